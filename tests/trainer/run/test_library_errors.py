"""What a library raises is said in words, with the part of the run that it came from; what we raise is not."""

import json
from pathlib import Path

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.command import launch
from evenkeel.trainer.run.check.context import first_of
from evenkeel.trainer.run.library_errors import library_errors_in_words


def test_what_a_library_raises_names_the_stage_and_keeps_its_traceback():
    said = "Loading the model: JSONDecodeError: Expecting"
    with pytest.raises(Refusal, match=said) as refused, library_errors_in_words(lambda: "Loading the model"):
        json.loads("{1")
    assert refused.value.code == "library"
    file = Path(str(refused.value).rpartition("Its traceback: ")[2])
    assert "json.loads" in file.read_text()
    file.unlink()


def test_a_mistake_of_ours_and_a_refusal_stay_what_they_are():
    with pytest.raises(TypeError, match="len"), library_errors_in_words(lambda: "Loading"):
        first_of(None)  # type: ignore[arg-type]
    with pytest.raises(Refusal), library_errors_in_words(lambda: "Loading"):
        raise Refusal("held")
    with pytest.raises(ValueError, match="Expecting"), library_errors_in_words(lambda: "Loading", lambda: True):
        json.loads("{1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--mixed_precision", "no", "--config_file", "{}.gone", "quickstart"], "launcher.yaml.gone"),
        (["--mixed_precision", "no", "--config_file", "{}", "quickstart"], "unknown keys (['mixed_precisions'])"),
    ],
)
def test_a_launcher_that_starts_nothing_says_why(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "launcher.yaml"
    file.write_text("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precisions: bf16\n")
    assert launch.main([argument.format(file) for argument in arguments]) == 2
    assert said in capsys.readouterr().err

"""What a library raises is said in words, with the part of the run that it came from; what we raise is not."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from evenkeel.errors import Refusal
from evenkeel.trainer.command import launch, train
from evenkeel.trainer.run.check.context import first_of
from evenkeel.trainer.run.config.yaml_document import write
from evenkeel.trainer.run.library_errors import library_errors_in_words
from tests.scripts.test_train import SETTINGS
from tests.tiny_model import save_tiny_model


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


def run_file(folder: Path, model: Path) -> Path:
    settings = {**SETTINGS, "model": {"name_or_path": str(model)}, "output_dir": str(folder / "run")}
    (folder / "run.yaml").write_text(write(settings))
    return folder / "run.yaml"


def test_weights_that_are_no_numbers_are_refused_before_the_first_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model = save_tiny_model(tmp_path / "model")
    weights = load_file(model / "model.safetensors")
    weights["model.norm.weight"] = torch.full_like(weights["model.norm.weight"], torch.nan)
    save_file(weights, model / "model.safetensors", {"format": "pt"})
    assert train.main([str(run_file(tmp_path, model))]) == 2
    assert "are NaN or infinite (model.norm.weight)" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


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
    (tmp_path / "launcher.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precisions: bf16\n"
    )
    assert launch.main([argument.format(tmp_path / "launcher.yaml") for argument in arguments]) == 2
    assert said in capsys.readouterr().err

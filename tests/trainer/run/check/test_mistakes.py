"""Every mistake in the table is found, with its severity, and none ends in a traceback; the right run is right."""

import os
import re
from collections.abc import Iterator
from functools import cache

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.run.check.check import Checked, checked
from evenkeel.trainer.run.check.report import json_report, text_report
from evenkeel.trainer.run.launch import train
from tests.trainer.run.check.mistakes import MISTAKES, RIGHT_SETTINGS, Mistake
from tests.trainer.run.check.mistakes.workshop import make_workshop


@pytest.fixture(scope="module", autouse=True)
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = make_workshop(tmp_path_factory.mktemp("workshop"))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for name in [name for name in os.environ if name.startswith("WANDB_") and name != "WANDB_MODE"]:
            patched.delenv(name)  # what a run of another test in this process has set
        yield


@cache
def found(*overrides: str) -> Checked:
    return checked("run.yaml", overrides, processes=None)


def test_the_right_run_has_neither_errors_nor_warnings():
    result = found()
    assert [problem for problem in result.problems if problem.severity != "note"] == []
    assert result.plan is not None


@pytest.mark.parametrize(
    "overrides",
    [
        ["model.name_or_path=models/no_cue_needed"],
        ["model.name_or_path=models/no_turn", "model.assistant_prefix=assistant "],
        ["model.assistant_prefix=<think>"],
    ],
    ids=["a template that needs no generation prompt", "one that the prefix gives", "a prefix behind it"],
)
def test_what_resembles_a_mistake_of_a_template_is_none(overrides: list[str]):
    result = found(*overrides)
    assert [problem for problem in result.problems if problem.severity == "error"] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_found(mistake: Mistake):
    result = found(*mistake.overrides)
    kind = (mistake.severity, mistake.code)
    said = [str(problem) for problem in result.problems if (problem.severity, problem.code) == kind]
    assert any(mistake.says in text for text in said), "\n".join(map(str, result.problems))
    assert "Traceback" not in text_report(result, "run.yaml")
    assert '"ok": ' in json_report(result, "run.yaml")
    if mistake.severity != "error":
        assert result.errors == []


ERRORS = [e for e in MISTAKES if e.severity == "error" and e.code != "unexplained"]
PLACE = re.compile(r"(?:\d+ problems:\n- )?([^\n]+?, line \d+|command line): ")


@pytest.mark.parametrize("mistake", ERRORS[::15], ids=lambda mistake: mistake.name)
def test_a_run_is_refused_with_the_line_that_a_check_names(mistake: Mistake):
    places = {place[1] for error in found(*mistake.overrides).errors if (place := PLACE.match(str(error)))}
    with pytest.raises(Refusal) as refused:
        train("run.yaml", mistake.overrides)
    place = PLACE.match(str(refused.value))
    assert place is not None if places else place is None, refused.value


@pytest.mark.slow
@pytest.mark.parametrize("overrides", RIGHT_SETTINGS, ids=" ".join)
def test_what_is_right_is_left_alone(overrides: tuple[str, ...]):
    result = found(*overrides)
    assert [problem for problem in result.problems if problem.severity != "note"] == []

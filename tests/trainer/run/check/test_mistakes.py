"""Every mistake in the table is found, with its severity, and none ends in a traceback; the right run is right."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.trainer.run.check.mistakes import MISTAKES, MORE_MISTAKES, RIGHT_SETTINGS, Mistake
from tests.trainer.run.check.mistakes.workshop import RIGHT, make_workshop
from trainer.run.check.check import Checked, checked
from trainer.run.check.report import json_report, text_report
from trainer.run.config import RunConfig

TOPICS = {
    "file",
    "machine",
    *RunConfig.model_fields,
    "lora",
    "peft",
    "learning_rate",
    "reward",
    "dataset",
    "steps",
    "extends",
    "no_cuda",
    "warmup_ratio",
    "TRL",
}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make_workshop(tmp_path_factory.mktemp("workshop"))
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)
        patched.chdir(folder)
        yield folder


def found(folder: Path, mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> Checked:
    (folder / "run.yaml").write_text(RIGHT if mistake.yaml is None else mistake.yaml)
    for name, text in mistake.files.items():
        (folder / name).write_text(text)
    for name, value in mistake.environment.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    result = checked("run.yaml", mistake.overrides, processes=mistake.processes)
    for name in mistake.files:
        (folder / name).unlink()
    return result


def test_there_are_many_and_each_has_its_name():
    assert len(MISTAKES) >= 120
    assert len({mistake.name for mistake in (*MISTAKES, *MORE_MISTAKES)}) == len(MISTAKES) + len(MORE_MISTAKES)


def test_the_right_run_has_neither_errors_nor_warnings(workshop: Path, monkeypatch: pytest.MonkeyPatch):
    result = found(workshop, Mistake("none", ""), monkeypatch)
    assert [finding for finding in result.findings if finding.severity != "note"] == []
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
def test_what_resembles_a_mistake_of_a_template_is_none(
    overrides: list[str], workshop: Path, monkeypatch: pytest.MonkeyPatch
):
    result = found(workshop, Mistake("none", "", tuple(overrides)), monkeypatch)
    assert [finding for finding in result.findings if finding.severity == "error"] == []


MORE = [pytest.param(mistake, marks=pytest.mark.slow) for mistake in MORE_MISTAKES]


@pytest.mark.parametrize("mistake", [*MISTAKES, *MORE], ids=lambda mistake: mistake.name)
def test_a_mistake_is_found(mistake: Mistake, workshop: Path, monkeypatch: pytest.MonkeyPatch):
    if mistake.lacking is not None and find_spec(mistake.lacking) is not None:
        pytest.skip(f"{mistake.lacking} is installed here")
    result = found(workshop, mistake, monkeypatch)
    assert {finding.topic for finding in result.findings} <= TOPICS
    said = [finding.text for finding in result.findings if finding.severity == mistake.severity]
    assert any(mistake.expected in text for text in said), "\n".join(map(str, result.findings))
    assert "unexplained" not in text_report(result, "run.yaml")
    assert '"ok": ' in json_report(result, "run.yaml")
    if mistake.severity != "error":
        assert result.errors == []


@pytest.mark.slow
@pytest.mark.parametrize("overrides", RIGHT_SETTINGS, ids=" ".join)
def test_what_is_right_is_left_alone(overrides: tuple[str, ...], workshop: Path, monkeypatch: pytest.MonkeyPatch):
    result = found(workshop, Mistake("none", "", overrides), monkeypatch)
    assert [finding for finding in result.findings if finding.severity != "note"] == []

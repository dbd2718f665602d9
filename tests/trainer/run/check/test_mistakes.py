"""Every mistake in the table is found, with its severity, and none ends in a traceback; the right run is right."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from evenkeel.rewards import Refusal
from evenkeel.trainer.run.check.check import Checked, checked
from evenkeel.trainer.run.check.report import json_report, text_report
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.launch import train
from tests.paths import ROOT
from tests.trainer.run.check.mistakes import MISTAKES, MORE_MISTAKES, RIGHT_SETTINGS, Mistake
from tests.trainer.run.check.mistakes.workshop import RIGHT, make_workshop

ROWS: Any = YAML(typ="safe").load(Path(__file__).with_name("sentences.yaml"))["findings"]
SENTENCES = {row["mistake"]: row for row in ROWS}
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


ELSEWHERE = {
    "code-not-run",
    "disk-will-be-full",
    "impossible-learning-rate",
    "memory-estimate",
    "missing-weight-files",
    "no-regular-file",
    "too-few-inodes",
    "tracker-variable",
    "tracker-version",
    "vllm-version",
}
"""Codes that need a machine or a package of another kind; test_check, test_engine and test_trackers ask for theirs."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make_workshop(tmp_path_factory.mktemp("workshop"))
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)
        patched.chdir(folder)
        yield folder


@contextmanager
def made(folder: Path, mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (folder / "run.yaml").write_text(RIGHT if mistake.yaml is None else mistake.yaml)
    for name, text in mistake.files.items():
        (folder / name).write_text(text)
    for name in [name for name in os.environ if name.startswith("WANDB_") and name != "WANDB_MODE"]:
        monkeypatch.delenv(name)  # what a run of another test in this process has set
    for name, value in mistake.environment.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    yield
    for name in mistake.files:
        (folder / name).unlink()


def found(folder: Path, mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> Checked:
    with made(folder, mistake, monkeypatch):
        return checked("run.yaml", mistake.overrides, processes=mistake.processes)


def fullmatch(message: str, text: str) -> bool:
    """Whether the text is the message, in which (any) stands for what differs between machines."""
    return re.fullmatch(re.escape(message).replace(re.escape("(any)"), ".+"), text) is not None


def test_no_code_is_without_its_sentence() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "trainer/run/check").glob("*.py"))
    named = re.findall(r"""\b(?:error|warning|note|grave)\(\s*"\w+",\s*"([a-z0-9-]+)\"""", source)
    named += re.findall(r"""return \(?\s*"([a-z0-9]+(?:-[a-z0-9]+)+)",""", source)
    named += re.findall(r"""\bfault\(\s*"([a-z-]+)\"""", source)
    named += [code for line in re.findall(r"\bcode=(.*)", source) for code in re.findall(r'"([a-z-]+)"', line)]
    by_name = {mistake.name: mistake.code for mistake in (*MISTAKES, *MORE_MISTAKES)}
    assert all(by_name[row["mistake"]] == row["code"] for row in ROWS)
    assert {*named} - {row["code"] for row in ROWS} == ELSEWHERE


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
    kind = (mistake.severity, mistake.code)
    said = [finding.text for finding in result.findings if (finding.severity, finding.code) == kind]
    assert any(mistake.says in text for text in said), "\n".join(map(str, result.findings))
    if mistake.name in SENTENCES:
        here = [text.replace(str(workshop), "FOLDER") for text in said]
        assert any(fullmatch(SENTENCES[mistake.name]["message"], text) for text in here), "\n".join(here)
    assert "unexplained" not in text_report(result, "run.yaml")
    assert '"ok": ' in json_report(result, "run.yaml")
    if mistake.severity != "error":
        assert result.errors == []


ERRORS = [each for each in (*MISTAKES, *MORE_MISTAKES) if each.severity == "error" and each.processes is None]
PLACE = re.compile(r"(?:\d+ problems:\n- )?([^\n]+?, line \d+|command line): ")


@pytest.mark.parametrize(
    "mistake",
    [pytest.param(each, marks=[] if number % 80 == 0 else [pytest.mark.slow]) for number, each in enumerate(ERRORS)],
    ids=lambda mistake: mistake.name,
)
def test_a_run_is_refused_with_the_line_that_a_check_names(
    mistake: Mistake, workshop: Path, monkeypatch: pytest.MonkeyPatch
):
    if mistake.lacking is not None and find_spec(mistake.lacking) is not None:
        pytest.skip(f"{mistake.lacking} is installed here")
    places = {place[1] for error in found(workshop, mistake, monkeypatch).errors if (place := PLACE.match(error.text))}
    with made(workshop, mistake, monkeypatch), pytest.raises(Refusal) as refused:
        train("run.yaml", mistake.overrides)
    place = PLACE.match(str(refused.value))
    assert place is not None if places else place is None, refused.value


@pytest.mark.slow
@pytest.mark.parametrize("overrides", RIGHT_SETTINGS, ids=" ".join)
def test_what_is_right_is_left_alone(overrides: tuple[str, ...], workshop: Path, monkeypatch: pytest.MonkeyPatch):
    result = found(workshop, Mistake("none", "", overrides), monkeypatch)
    assert [finding for finding in result.findings if finding.severity != "note"] == []

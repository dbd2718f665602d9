"""The table of gates: what passes, what fails, what was not run, and that a wrong trainer turns a row red."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer import RLVRTrainer
from tests.gates import gate as gates
from tests.gates import rows
from tests.gates.__main__ import main
from tests.gates.equality import QUICK, SETTINGS
from tests.gates.gate import (
    EXACTLY,
    NO_FEWER,
    NO_OTHERS,
    Gate,
    Measured,
    NotRunError,
    Options,
    at_most,
    judged,
    near,
    no_lower,
    run,
)
from tests.gates.gradients import PLANNED, cancelled, planned_beside_trl
from tests.gates.mutants import CAUGHT_UNDER
from tests.gates.rows import GATES


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record of one row, made on this machine."""
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps({"row": {"values": {"passed": 3, "ratio": 2.0}, "machine": gates.machine()}}))
    monkeypatch.setattr(gates, "RECORD", path)
    return path


def row(*, wrong: list[str] | None = None, **values: float) -> Gate:
    rules = {"passed": NO_FEWER, "ratio": no_lower(0.1), "rat": EXACTLY}
    return Gate("row", "something", lambda _: Measured(values, wrong or []), rules)


def test_a_row_passes_beside_its_record_alone(record: Path):
    assert judged(row(passed=3, ratio=1.81), Options()).verdict == "PASS"
    for worse in (row(passed=2, ratio=2.0), row(passed=3, ratio=1.79), row(passed=3), row(passed=3, ratio=2, new=1)):
        if worse.rules.get("new") is None:
            worse = Gate(worse.name, worse.proves, worse.measure, {**worse.rules, "": EXACTLY})
        assert judged(worse, Options()).verdict == "FAIL"
    assert judged(row(passed=3, ratio=2.0, wrong=["one setting differs"]), Options()).verdict == "FAIL"


def test_what_cannot_be_run_and_what_breaks_are_not_the_same():
    def away(_: Options) -> Measured:
        raise NotRunError("nothing to run it on")

    def broken(_: Options) -> Measured:
        raise ZeroDivisionError("by 0")

    assert judged(Gate("row", "", away, {}), Options()).verdict == "NOT RUN"
    failed = judged(Gate("row", "", broken, {}), Options())
    assert (failed.verdict, failed.notes) == ("FAIL", ["ZeroDivisionError: by 0"])


def test_rules():
    assert near(0.1).holds(1.0, 1.05, False)
    assert not near(0.1).holds(1.0, 1.05, True)  # on the same machine sums round alike
    assert at_most(0.0).holds(0.0, 1.0, True)
    assert not at_most(0.0).holds(1e-12, 1.0, True)
    assert NO_OTHERS.holds("one", "one, two", True)
    assert NO_OTHERS.holds("none", "one", True)
    assert not NO_OTHERS.holds("one, three", "one, two", True)


def test_a_record_says_where_it_comes_from(record: Path):
    assert judged(row(passed=5, ratio=1.0), Options(), record=True).verdict == "PASS"
    entry = json.loads(record.read_text())["row"]
    assert entry["values"] == {"passed": 5, "ratio": 1.0}
    assert entry["command"] == "scripts/gates.sh row"
    assert {"commit", "date", "machine", "seconds"} <= entry.keys()


def test_a_command_that_takes_too_long_is_ended_with_what_it_has_started(tmp_path: Path):
    late = f"import time; time.sleep(2); open({str(tmp_path / 'late')!r}, 'w')"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {late!r}])"
    with pytest.raises(subprocess.TimeoutExpired):
        run([sys.executable, "-c", starts], seconds=1)
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


def test_a_failing_test_fails_its_row_and_leaves_what_pytest_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tried = tmp_path / "test_tried.py"
    tried.write_text("import pytest\ndef test_a(): pass\ndef test_b(): assert 1 == 2\ndef test_c(): pytest.skip()\n")
    monkeypatch.setattr(rows, "ROOT", tmp_path)
    measured = rows.passing("--noconftest", str(tried), seconds=60)(Options())
    assert measured.values == {"tests passed": 1, "failed": 1}
    assert [note.split(":")[0] for note in measured.wrong] == ["failure", "skipped", "all that pytest said"]
    (kept,) = (tmp_path / "runs" / "gates").iterdir()
    assert "assert 1 == 2" in kept.read_text()


def test_unknown_rows_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as refused:
        main(["paritee"])
    assert refused.value.code == 2
    assert "no row is called paritee" in capsys.readouterr().err


def test_every_row_is_on_record_with_a_rule_for_each_value():
    recorded = gates.records()
    by_name = {each.name: each for each in GATES}
    assert recorded.keys() == by_name.keys()
    for name, entry in recorded.items():
        for value in entry["values"]:
            by_name[name].rule(value)


HARNESS = """
import json, sys
chosen = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert chosen["--trainer"] == "evenkeel:RLVRTrainer" and chosen["--tests"].endswith("test_grpo_trainer.py")
outcomes = {"a.py::T::one": "passed", "a.py::T::two": "failed", "a.py::T::three": "skipped"}
with open(chosen["--json"], "w") as file:
    json.dump({"tests": {name: {"outcome": outcome} for name, outcome in outcomes.items()}}, file)
"""


def test_trls_tests_need_a_folder_and_count_what_stock_alone_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (row_of_trl,) = (each for each in GATES if each.name == "trl_tests")
    monkeypatch.delenv("TRL_TESTS", raising=False)
    assert main(["trl_tests"]) == 3
    assert "NOT RUN  trl_tests" in capsys.readouterr().out
    monkeypatch.setenv("TRL_TESTS", str(tmp_path))
    with pytest.raises(NotRunError, match=r"lacks run\.py, baseline\.json, venv/bin/python, trlrepo"):
        row_of_trl.measure(Options())

    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "trlrepo" / "tests").mkdir(parents=True)
    (tmp_path / "trlrepo" / "tests" / "test_grpo_trainer.py").write_text("")
    (tmp_path / "run.py").write_text(HARNESS)
    by_stock = {f"a.py::T::{name}": {"outcome": "passed"} for name in ("one", "two", "four")}
    (tmp_path / "baseline.json").write_text(json.dumps({"tests": by_stock}))
    values = row_of_trl.measure(Options()).values
    assert values == {"passed by stock": 3, "passed by ours": 1, "passed by stock alone": "T::four, T::two"}


def test_the_readme_names_every_row():
    text = Path(gates.__file__).with_name("README.md").read_text()
    assert [each.name for each in GATES if f"`{each.name}`" not in text] == []


def test_settings_are_many_and_different():
    assert len({each.name for each in SETTINGS}) == len(SETTINGS) == 72
    assert {each.name for each in QUICK} < {each.name for each in SETTINGS}
    assert len({str((each.arguments, each.rewards, *vars(each).items())) for each in SETTINGS}) == 72
    assert set(CAUGHT_UNDER.values()) <= {each.name for each in SETTINGS}


@pytest.mark.slow
def test_a_wrong_trainer_turns_equality_red(capsys: pytest.CaptureFixture[str]):
    wrong = ["equality_quick", "--trainer", "tests.gates.mutants:LossOffByAMillionth", "--jobs", "2"]
    assert main(wrong) == 1
    assert "FAIL     equality_quick" in capsys.readouterr().out


@pytest.mark.slow
def test_every_wrong_class_is_told_apart(capsys: pytest.CaptureFixture[str]):
    assert main(["wrong_classes", "--jobs", "2"]) == 0


class WrongWherePlanned(RLVRTrainer):
    """The gradient of planned micro-batches is off by a hundred-thousandth."""

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        self.factor = 1 + 1e-5 * (keywords["speed"].microbatches == "planned")
        super().__init__(*positional, **keywords)

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs) * self.factor


class Scatters(RLVRTrainer):
    """Shuffles the rows of a group over optimizer steps, whatever the strategies need."""

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        super().__init__(*positional, **{**keywords, "keep_groups": "off"})


@pytest.mark.slow
def test_a_wrong_planned_gradient_is_seen():
    cases = {"grpo": PLANNED["grpo"]}
    ((difference, _),) = planned_beside_trl(cases, trainer=WrongWherePlanned).values()
    assert 0.9e-5 < difference < 1.1e-5
    assert planned_beside_trl(cases)["grpo"][0] < 2e-6


@pytest.mark.slow
def test_scattered_groups_are_seen():
    measured, logged = cancelled("exchangeable", 4, "single_pass", None, trainer=Scatters)
    assert max(measured) > 0.2
    assert max(logged) > 0.2

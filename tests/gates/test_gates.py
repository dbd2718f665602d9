"""The table of gates: what passes, what fails, what was not run, and that a wrong trainer turns a row red."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gates import gate as gates
from tests.gates.__main__ import main
from tests.gates.equality import QUICK, SETTINGS
from tests.gates.gate import (
    EXACTLY,
    NO_FEWER,
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


def test_a_record_says_where_it_comes_from(record: Path):
    assert judged(row(passed=5, ratio=1.0), Options(), record=True).verdict == "PASS"
    entry = json.loads(record.read_text())["row"]
    assert entry["values"] == {"passed": 5, "ratio": 1.0}
    assert entry["command"] == "scripts/gates.sh row"
    assert {"commit", "date", "machine", "seconds"} <= entry.keys()


def test_a_command_that_takes_too_long_is_ended_with_what_it_has_started(tmp_path: Path):
    late = f"import time; time.sleep(3); open({str(tmp_path / 'late')!r}, 'w')"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {late!r}])"
    with pytest.raises(subprocess.TimeoutExpired):
        run([sys.executable, "-c", starts], seconds=1)
    time.sleep(3)
    assert not (tmp_path / "late").exists()


def test_unknown_rows_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as refused:
        main(["paritee"])
    assert refused.value.code == 2
    assert "no row is called paritee" in capsys.readouterr().err


def test_every_row_is_on_record_and_every_record_is_a_row():
    recorded = gates.records()
    assert {each.name for each in GATES} == recorded.keys()
    for each in GATES:
        for name in recorded[each.name]["values"]:
            each.rule(name)


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

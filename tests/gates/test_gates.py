"""The table of gates: what passes, what fails, what was not run, and that a wrong trainer turns a row red."""

import json
from pathlib import Path

import pytest

from tests.gates import gate as gates
from tests.gates.gate import (
    EXACTLY,
    NO_FEWER,
    Gate,
    Measured,
    Options,
    judged,
    no_lower,
)
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


def test_every_row_is_on_record_with_a_rule_for_each_value():
    recorded = gates.records()
    by_name = {each.name: each for each in GATES}
    assert recorded.keys() == by_name.keys()
    for name, entry in recorded.items():
        for value in entry["values"]:
            by_name[name].rule(value)

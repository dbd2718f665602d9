"""A gate: what it proves, how it is measured, and when the numbers pass beside those on record."""

import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.paths import ROOT

RECORD = Path(__file__).with_name("recorded.json")
"""Row → its values, and when, where and at which commit they were measured."""
Value = float | int | str


class NotRunError(Exception):
    """A gate cannot be measured here, and why."""


@dataclass(frozen=True)
class Options:
    """What the command line chose."""

    trainer: str = "evenkeel:RLVRTrainer"
    """``module:Class`` that the equality rows compare with stock."""
    jobs: int = 2
    say: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Measured:
    """Numbers of one row; ``wrong``: sentences about what failed, shown below the row."""

    values: dict[str, Value]
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Rule:
    """When a value passes. ``holds(measured, recorded, same_machine)``."""

    text: str
    holds: Callable[[Any, Any, bool], bool]


EXACTLY = Rule("as recorded", lambda value, recorded, _: bool(value == recorded))
NO_FEWER = Rule("no fewer", lambda value, recorded, _: bool(value >= recorded))
NO_OTHERS = Rule(
    "none but those on record", lambda value, recorded, _: bool({*value.split(", ")} <= {*recorded.split(", "), "none"})
)
SHOWN = Rule("for information", lambda value, recorded, _: True)


def at_most(limit: float) -> Rule:
    return Rule(f"at most {limit:g}", lambda value, recorded, _: bool(value <= limit))


def at_least(limit: float) -> Rule:
    return Rule(f"at least {limit:g}", lambda value, recorded, _: bool(value >= limit))


def no_lower(tolerance: float) -> Rule:
    """Not below the record by more than that share of it."""
    return Rule(f"down to {tolerance:.0%} below", lambda value, recorded, _: bool(value >= recorded * (1 - tolerance)))


def near(tolerance: float) -> Rule:
    """Equal on the machine of the record; on another, where sums round otherwise, within ``tolerance``."""
    return Rule(
        f"as recorded, within {tolerance:g} on another machine",
        lambda value, recorded, same: bool(value == recorded if same else abs(value - recorded) <= tolerance),
    )


@dataclass(frozen=True)
class Gate:
    """One row of the table."""

    name: str
    proves: str
    measure: Callable[[Options], Measured]
    rules: Mapping[str, Rule]
    """Value → when it passes; by the beginning of its name, the longest that fits."""
    fast: bool = False

    def rule(self, value: str) -> Rule:
        return self.rules[max((start for start in self.rules if value.startswith(start)), key=len)]


@dataclass(frozen=True)
class Row:
    """What came out of a gate."""

    gate: Gate
    verdict: str
    seconds: float
    values: dict[str, Value] = field(default_factory=dict)
    recorded: dict[str, Value] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.verdict:<8} {self.gate.name:<18} {self.seconds:>6.0f} s  {self.gate.proves}"]
        for name, value in self.values.items():
            recorded = written(self.recorded[name]) if name in self.recorded else "nothing"
            lines.append(f"{'':<9}{name}: {written(value)} (on record {recorded}; passes {self.gate.rule(name).text})")
        return "\n".join([*lines, *(f"{'':<9}! {note}" for note in self.notes)])


def written(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def machine() -> str:
    """What decides how sums round: processor, torch, and the threads it uses."""
    import torch

    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    found = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{found[0] if found else platform.machine()}, torch {torch.__version__}"


def records() -> dict[str, Any]:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def scored(gate: Gate, options: Options, *, record: bool = False) -> Row:
    """Measure ``gate`` and hold it beside the record; ``record``: what was measured becomes the record."""
    started = time.monotonic()
    try:
        measured = gate.measure(options)
    except NotRunError as why:
        return Row(gate, "NOT RUN", time.monotonic() - started, notes=[str(why)])
    except Exception as failure:  # noqa: BLE001  one broken gate must not hide what the others say
        notes = [f"{type(failure).__name__}: {failure}"]
        return Row(gate, "FAIL", time.monotonic() - started, notes=notes)
    seconds = time.monotonic() - started
    if record:
        write_record(gate, measured, seconds)
    entry = records().get(gate.name, {})
    recorded, same = entry.get("values", {}), entry.get("machine") == machine()
    notes = list(measured.wrong)
    for name in sorted(recorded.keys() - measured.values.keys()):
        notes.append(f"{name} is on record and was not measured")
    for name, value in measured.values.items():
        if name not in recorded:
            notes.append(f"{name} is not on record: look at it, then record it with --record {gate.name}")
        elif not gate.rule(name).holds(value, recorded[name], same):
            notes.append(f"{name}: {written(value)} does not pass ({gate.rule(name).text})")
    return Row(gate, "FAIL" if notes else "PASS", seconds, measured.values, recorded, notes)


def write_record(gate: Gate, measured: Measured, seconds: float) -> None:
    """Put the row on record, whatever its verdict: the diff is there to be read."""
    product = ["--", "trainer", "rewards", "configs"]
    commit = run(["git", "log", "-1", "--format=%h", *product], seconds=60).stdout.strip()
    changed = run(["git", "status", "--porcelain", *product], seconds=60).stdout.strip()
    entry = {
        "values": measured.values,
        "command": f"scripts/gates.sh {gate.name}",
        "commit": f"{commit or 'unknown'}{' and changes' if changed else ''}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        "seconds": round(seconds),
    }
    RECORD.write_text(json.dumps({**records(), gate.name: entry}, indent=2, ensure_ascii=False) + "\n")


def run(command: Sequence[str], *, seconds: float, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in the checkout; all that it has started is ended with it where it takes longer than ``seconds``."""
    quiet = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **quiet, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)

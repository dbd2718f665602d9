"""evenkeel sweep as its users run it: real cells of a few steps, killed and continued, failing, and through SLURM."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.process_group import signal_group
from evenkeel.trainer.run.config.yaml_document import write
from tests.paths import ROOT
from tests.scripts.test_train import SETTINGS

LOPTI = {"algorithm.update_schedule": "lopti"}
LONG = {  # of half a second a step while WAIT_WHILE is there
    "rewards.0.verifier": "tests.scripts.verifiers:unhurried",
    "trl.max_steps": 200,
    "trl.save_steps": 20,
}


def sweep_file(folder: Path, model: Path, variants: dict[str, Any], **changes: Any) -> Path:
    """A sweep whose cells take seconds."""
    (folder / "base.yaml").write_text(write({**SETTINGS, "model": {"name_or_path": str(model)}}))
    settings = {
        "config": "base.yaml",
        "baseline": next(iter(variants)),
        "seeds": [0],
        "variants": variants,
        "output_dir": str(folder / "sweep"),
        "environment": {"OMP_NUM_THREADS": "1"},
    }
    path = folder / "compare.yaml"
    path.write_text(write({**settings, **changes}))
    return path


@dataclass
class Started:
    """An `evenkeel sweep` that was started; its cells outlive it, so it writes to a file and not to a pipe."""

    process: subprocess.Popen[bytes]
    log: Path

    def finished(self) -> tuple[int, str]:
        """Its exit status and what it printed, when it has ended."""
        status = self.process.wait(timeout=400)
        return status, self.log.read_text()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Starts `evenkeel sweep` in a session of its own; what is left of it and of its cells ends with the test."""
    started: list[Started] = []

    def launch(*arguments: str, **environment: str) -> Started:
        log = tmp_path / f"sweep-{len(started)}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "evenkeel", "sweep", *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(Started(process, log))
        return started[-1]

    yield launch
    for each in started:
        each.process.kill()
        each.process.wait()
    for path in tmp_path.glob("sweep/*/attempt-*.json"):
        signal_group(json.loads(path.read_text())["process_group"], signal.SIGKILL)


def wait_until(condition: Callable[[], Any], sweep: Started, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert sweep.process.poll() is None, sweep.log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)


Start = Callable[..., Started]


def trained_steps(cell: CellDirectory) -> list[int]:
    path = cell.run / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith("\n")]
    return [entry["step"] for entry in entries if "loss" in entry]


@pytest.mark.slow
def test_a_failing_cell_is_retried_and_reported_and_stops_no_other(tmp_path: Path, tiny_model: Path, start: Start):
    variants = {"grpo": {}, "broken": {"algorithm.advantage": "tests.scripts.strategies:failing"}, "lopti": LOPTI}
    executor = {"kind": "local", "parallel": 2}
    status, output = start("run", str(sweep_file(tmp_path, tiny_model, variants, executor=executor))).finished()
    assert status == 1, output
    cells = {name: CellDirectory(tmp_path / "sweep" / f"{name}-s0") for name in variants}
    states = {name: cell.state() for name, cell in cells.items()}
    assert states == {"grpo": "finished", "broken": "failed", "lopti": "finished"}
    assert len(cells["broken"].attempts()) == 2  # one retry
    assert "broken-s0: failed (exit status 1); trying again" in output
    assert "it fails on purpose" in output.split("broken-s0 failed; the end of")[1]
    steps = {name: cells[name].summary()["optimizer_steps"] for name in ("grpo", "lopti")}
    assert steps == {"grpo": 4, "lopti": 8}
    first_rewards = {}
    for name in ("grpo", "lopti"):
        entries = map(json.loads, (cells[name].run / "metrics.jsonl").read_text().splitlines())
        first_rewards[name] = next(entry["reward"] for entry in entries if entry.get("reward") is not None)
    assert first_rewards["grpo"] == first_rewards["lopti"]  # the same prompts, answered from the same random state

    status, output = start("status", str(tmp_path / "compare.yaml")).finished()
    assert status == 0
    assert "2 of 3 finished" in output
    assert "8/8" in output


@pytest.mark.slow
def test_killed_and_started_again_it_awaits_resumes_and_repeats_nothing(tmp_path: Path, tiny_model: Path, start: Start):
    wait_while = tmp_path / "wait"
    wait_while.touch()
    file = sweep_file(tmp_path, tiny_model, {"long": LONG}, retries=0)
    cell = CellDirectory(tmp_path / "sweep" / "long-s0")
    run = ("run", str(file))
    first = start(*run, WAIT_WHILE=str(wait_while))
    wait_until(lambda: trained_steps(cell), first)
    status, output = start(*run, WAIT_WHILE=str(wait_while)).finished()
    assert status == 2
    assert "is locked by process" in output
    first.process.kill()
    first.process.wait()
    assert cell.is_running()  # the cell outlives the sweep

    second = start(*run, WAIT_WHILE=str(wait_while))
    wait_until(lambda: "long-s0: still running from before" in second.log.read_text(), second)
    wait_until(lambda: trained_steps(cell)[-1] > 20, second)
    os.kill(second.process.pid, signal.SIGINT)
    status, output = second.finished()
    assert status == 130, output
    assert f"To continue:  evenkeel sweep run {file}" in output
    assert cell.state() == "stopped"
    assert (checkpoint := cell.checkpoint()) is not None
    assert 20 < int(checkpoint.name.removeprefix("checkpoint-")) < 200

    wait_while.unlink()
    status, output = start(*run, WAIT_WHILE=str(wait_while)).finished()
    assert status == 0, output
    assert f"long-s0: started from {checkpoint.name}" in output
    assert trained_steps(cell) == list(range(1, 201))
    assert [entry["resumed_from"] for entry in cell.attempts()] == [None, checkpoint.name]

    written = cell.summary()
    status, output = start(*run, WAIT_WHILE=str(wait_while)).finished()
    assert status == 0, output
    assert "started" not in output
    sweep_file(tmp_path, tiny_model, {"long": {**LONG, "trl.learning_rate": 0.5}})
    status, output = start(*run, WAIT_WHILE=str(wait_while)).finished()
    assert status == 1, output
    assert "trl.learning_rate: 0.01 → 0.5" in output
    assert cell.summary() == written

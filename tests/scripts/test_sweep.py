"""evenkeel sweep as its users run it: real cells of a few steps, killed and continued, failing, and through SLURM."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.process_group import signal_group
from evenkeel.trainer.run.config.yaml_document import write
from evenkeel.trainer.run.record.run_record import RunRecord
from tests.paths import ROOT
from tests.scripts.test_resume import assert_same_state
from tests.scripts.test_train import SETTINGS, untimed, wandb_parts
from tests.waiting import wait_until

LOPTI = {"algorithm.update_schedule": "lopti"}
LONG = {  # of half a second a step while WAIT_WHILE is there
    "rewards.0.verifier": "tests.scripts.verifiers:unhurried",
    "trl.max_steps": 200,
    "trl.save_steps": 20,
}
THREAD = "import threading, time; threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()"


def sweep_file(folder: Path, model: Path, variants: dict[str, Any], how: str = "forked", **changes: Any) -> Path:
    """A sweep whose cells take seconds; ``launched``, for there is a thread in each process that runs Python."""
    (folder / "sitecustomize.py").write_text(THREAD)
    imported = f"{folder}:{ROOT}" if how == "launched" else str(ROOT)
    (folder / "base.yaml").write_text(write({**SETTINGS, "model": {"name_or_path": str(model)}}))
    settings = {
        "config": "base.yaml",
        "baseline": next(iter(variants)),
        "seeds": [0],
        "variants": variants,
        "output_dir": str(folder / "sweep"),
        "environment": {"OMP_NUM_THREADS": "1", "PYTHONPATH": imported},
    }
    path = folder / "compare.yaml"
    path.write_text(write({**settings, **changes}))
    return path


@dataclass
class Started:
    """An `evenkeel sweep` that was started; its cells outlive it, so it writes to a file and not to a pipe."""

    process: subprocess.Popen[bytes]
    log: Path

    def ended(self, status: int = 0) -> str:
        """What it printed, when it has ended with that status."""
        assert self.process.wait(timeout=400) == status, self.log.read_text()
        return self.log.read_text()


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
    for path in tmp_path.rglob("attempt-*.json"):
        signal_group(json.loads(path.read_text())["process_group"], signal.SIGKILL)


def await_of(sweep: Started, condition: Callable[[], object]) -> None:
    wait_until(condition, sweep.log.read_text, can_still=lambda: sweep.process.poll() is None)


Start = Callable[..., Started]


def trained_steps(cell: CellDirectory) -> list[int]:
    return [line["step"] for line in RunRecord(cell.run).metrics if "loss" in line]


@pytest.mark.slow
def test_a_failing_cell_is_retried_and_reported_and_stops_no_other(tmp_path: Path, tiny_model: Path, start: Start):
    variants = {"grpo": {}, "broken": {"algorithm.advantage": "tests.scripts.strategies:failing"}, "lopti": LOPTI}
    variants = {name: {"logging.report_to": ["wandb"], **changes} for name, changes in variants.items()}
    executor = {"kind": "local", "parallel": 2}
    output = start("run", str(sweep_file(tmp_path, tiny_model, variants, executor=executor))).ended(1)
    cells = {name: CellDirectory(tmp_path / "sweep" / f"{name}-s0") for name in variants}
    states = {name: cell.state() for name, cell in cells.items()}
    assert states == {"grpo": "finished", "broken": "failed", "lopti": "finished"}
    assert len(cells["broken"].attempts()) == 2  # one retry
    assert "broken-s0: failed (exit status 1); trying again" in output
    assert "it fails on purpose" in output.split("broken-s0 failed; the end of")[1]
    steps = {name: cells[name].summary()["optimizer_steps"] for name in ("grpo", "lopti")}
    assert steps == {"grpo": 4, "lopti": 8}
    sent = [record.run for name in steps for part in wandb_parts(cells[name].run) for record in part]
    names = [f"{run.run_group}/{run.display_name}" for run in sent if run.run_id]
    assert names == ["compare/grpo-s0", "compare/lopti-s0"]
    lines = (RunRecord(cells[name].run).metrics for name in ("grpo", "lopti"))
    ours, theirs = (next(line["reward"] for line in each if line.get("reward") is not None) for each in lines)
    assert ours == theirs  # the same prompts, answered from the same random state

    table = start("status", str(tmp_path / "compare.yaml")).ended()
    assert "2 of 3 finished" in table
    assert "8/8" in table


@pytest.mark.slow
def test_a_forked_cell_is_the_launched_one_bit_for_bit(tmp_path: Path, tiny_model: Path, start: Start):
    for how in ("forked", "launched"):
        (tmp_path / how).mkdir()
        file = sweep_file(tmp_path / how, tiny_model, {"grpo": {}, "lopti": LOPTI}, how)
        start("run", str(file)).ended()
    for name, last in (("grpo-s0", "checkpoint-4"), ("lopti-s0", "checkpoint-8")):
        forked, launched = (CellDirectory(tmp_path / how / "sweep" / name) for how in ("forked", "launched"))
        assert ["forked" in attempt for cell in (forked, launched) for attempt in cell.attempts()] == [True, False]
        assert_same_state(forked.run / last, launched.run / last)
        assert untimed(forked.run) == untimed(launched.run)
        ours, theirs = (RunRecord(cell.run).manifest for cell in (forked, launched))
        del theirs["own_code"]["sitecustomize"]
        assert [key for key in ours if ours[key] != theirs[key]] == ["command"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["forked", "launched"])
def test_a_run_that_outlives_its_attempt_is_stopped_with_a_checkpoint_and_goes_on(tmp_path, tiny_model, start, how):
    wait_while = tmp_path / "wait"
    wait_while.touch()
    sweep = start("run", str(sweep_file(tmp_path, tiny_model, {"long": LONG}, how)), WAIT_WHILE=str(wait_while))
    cell = CellDirectory(tmp_path / "sweep" / "long-s0")
    await_of(sweep, lambda: trained_steps(cell))
    os.kill(cell.runner() or 0, signal.SIGKILL)
    await_of(sweep, lambda: len(cell.attempts()) == 2)
    wait_while.unlink()
    sweep.ended()
    assert trained_steps(cell) == list(range(1, 201))
    assert (cell.attempts()[1]["resumed_from"] or "").startswith("checkpoint-")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["forked", "launched"])
def test_killed_and_started_again_it_awaits_resumes_and_repeats_nothing(tmp_path, tiny_model, start, how):
    wait_while = tmp_path / "wait"
    wait_while.touch()
    file = sweep_file(tmp_path, tiny_model, {"long": LONG}, how, retries=0)
    cell = CellDirectory(tmp_path / "sweep" / "long-s0")
    run = ("run", str(file))
    first = start(*run, WAIT_WHILE=str(wait_while))
    await_of(first, lambda: trained_steps(cell))
    output = start(*run, WAIT_WHILE=str(wait_while)).ended(2)
    assert "is locked by process" in output
    first.process.kill()
    first.process.wait()
    assert cell.is_running()  # the cell outlives the sweep

    second = start(*run, WAIT_WHILE=str(wait_while))
    await_of(second, lambda: "long-s0: still running from before" in second.log.read_text())
    await_of(second, lambda: trained_steps(cell)[-1] > 20)
    os.kill(second.process.pid, signal.SIGINT)
    output = second.ended(130)
    assert f"To continue:  evenkeel sweep run {file}" in output
    assert cell.state() == "stopped"
    assert (checkpoint := cell.checkpoint()) is not None
    assert 20 < int(checkpoint.name.removeprefix("checkpoint-")) < 200

    wait_while.unlink()
    output = start(*run, WAIT_WHILE=str(wait_while)).ended()
    assert f"long-s0: started from {checkpoint.name}" in output
    assert trained_steps(cell) == list(range(1, 201))
    assert [entry["resumed_from"] for entry in cell.attempts()] == [None, checkpoint.name]

    written = cell.summary()
    output = start(*run, WAIT_WHILE=str(wait_while)).ended()
    assert "long-s0: started" not in output
    sweep_file(tmp_path, tiny_model, {"long": {**LONG, "trl.learning_rate": 0.5}}, how)
    output = start(*run, WAIT_WHILE=str(wait_while)).ended(1)
    assert "trl.learning_rate: 0.01 → 0.5" in output
    assert cell.summary() == written

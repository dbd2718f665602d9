"""Requests to stop: counted once, answered in words, given up after their grace time; ranks end with their launcher."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenkeel.trainer.run.callbacks.stopping import StopAtRolloutBoundary
from tests.paths import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def stop(tmp_path: Path) -> Iterator[StopAtRolloutBoundary]:
    callback = StopAtRolloutBoundary(steps_per_block=2, any_rank=bool)
    state = SimpleNamespace(is_world_process_zero=True, global_step=0)
    callback.on_train_begin(SimpleNamespace(output_dir=str(tmp_path)), state, None)
    yield callback
    callback.on_train_end(None, state, None)


def whole_checkpoint(run: Path, step: int) -> None:
    (run / f"checkpoint-{step}").mkdir()
    (run / f"checkpoint-{step}" / "manifest.json").touch()


def edge(callback: StopAtRolloutBoundary, step: int) -> bool:
    """Whether the run stops, with a checkpoint, behind ``step`` of 10."""
    control = SimpleNamespace(should_save=False, should_training_stop=False, should_evaluate=False)
    callback.on_step_end(None, SimpleNamespace(global_step=step, max_steps=10), control)
    assert control.should_save == control.should_training_stop == callback.stopped
    return control.should_training_stop


def test_a_request_stops_at_the_next_edge_of_a_rollout_batch(stop: StopAtRolloutBoundary, capsys):
    assert not edge(stop, 2)
    signal.raise_signal(signal.SIGTERM)
    assert "Stopping after this rollout batch, with a checkpoint." in capsys.readouterr().out
    assert [edge(stop, 3), edge(stop, 4)] == [False, True]


def test_what_the_launcher_passes_on_again_counts_once(stop: StopAtRolloutBoundary, capsys):
    """Ctrl-C in a terminal reaches each rank twice within a moment: from the terminal, and from the launcher."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        signal.raise_signal(number)
    assert capsys.readouterr().out.count("Stopping") == 1
    assert edge(stop, 4)


def test_only_a_whole_checkpoint_is_named(stop: StopAtRolloutBoundary, tmp_path: Path):
    """Its manifest is written last; until then the older one is what a resume goes on from."""
    arguments, state = SimpleNamespace(output_dir=str(tmp_path)), SimpleNamespace(global_step=10, max_steps=20)
    assert stop._last_checkpoint() == "the run's beginning"
    (tmp_path / "checkpoint-10").mkdir()
    stop.on_save(arguments, state, SimpleNamespace())
    assert stop._last_checkpoint() == "the run's beginning"
    whole_checkpoint(tmp_path, 8)
    assert stop._last_checkpoint() == "checkpoint-8"
    (tmp_path / "checkpoint-10" / "manifest.json").touch()
    assert stop._last_checkpoint() == "checkpoint-10"


def test_a_request_during_an_evaluation_stops_after_it(stop: StopAtRolloutBoundary):
    """How long each kind of work took is measured by itself."""
    state = SimpleNamespace(global_step=2, max_steps=10)
    control = SimpleNamespace(should_save=False, should_training_stop=False, should_evaluate=True)
    stop.work.started -= 3
    stop.on_step_end(None, state, control)
    assert stop.work.what == "evaluation"
    signal.raise_signal(signal.SIGTERM)
    stop.work.started -= 5
    stop.on_evaluate(None, state, control)
    assert (control.should_save, control.should_training_stop, stop.stopped) == (True, True, True)
    assert {what: round(took) for what, took in stop.work.took.items()} == {"rollout batch": 3, "evaluation": 5}
    assert stop.work.what == "checkpoint"


def test_a_request_during_a_checkpoint_stops_after_it(stop: StopAtRolloutBoundary, capsys):
    """Not one rollout batch later. The time of saving is not taken for that of a rollout batch."""
    state = SimpleNamespace(global_step=2, max_steps=10)
    control = SimpleNamespace(should_save=True, should_training_stop=False, should_evaluate=False)
    stop.work.started -= 3
    stop.on_step_end(None, state, control)
    stop.work.started -= 40
    signal.raise_signal(signal.SIGTERM)
    assert "Stopping after this checkpoint." in capsys.readouterr().out
    stop.on_save(None, state, control)
    assert control.should_training_stop
    assert stop.stopped
    assert {what: round(took) for what, took in stop.work.took.items()} == {"rollout batch": 3, "checkpoint": 40}


GRACE = """
import signal, sys, time
from types import SimpleNamespace
from evenkeel.trainer.run.callbacks.stopping import StopAtRolloutBoundary
stop = StopAtRolloutBoundary(2, bool, grace_seconds=0.2)
run = SimpleNamespace(output_dir="there is none")
stop.on_train_begin(run, SimpleNamespace(is_world_process_zero=True, global_step=8), None)
signal.raise_signal(signal.SIGTERM)
if sys.argv[1] == "edge":
    state = SimpleNamespace(global_step=10, max_steps=20)
    stop.on_step_end(None, state, SimpleNamespace(should_evaluate=False))
if sys.argv[2:]:
    time.sleep(0.3)
    stop.on_train_end(None, state, None)
deadline = time.monotonic() + 1
while time.monotonic() < deadline:
    pass
"""


@pytest.mark.slow
def test_after_its_grace_time_the_last_checkpoint_is_what_counts():
    result = subprocess.run([sys.executable, "-c", GRACE, "busy"], env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 143, result.stderr
    assert "if it ends within 0.2 s; else checkpoint-8 is what counts" in result.stdout
    assert "did not end within 0.2 s: checkpoint-8 is what counts. To resume: --resume auto." in result.stdout


@pytest.mark.slow
def test_a_batch_that_ended_in_time_may_save_its_checkpoint():
    command = [sys.executable, "-c", GRACE, "edge", "saved"]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


RANK = """
import signal, sys, time
from evenkeel.trainer.run.processes import end_with_launcher, launcher, say
signal.signal(signal.SIGTERM, lambda number, frame: (print("SIGTERM", flush=True), sys.exit()))
end_with_launcher()
print(launcher() is not None, flush=True)
time.sleep(30)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[2]])"


@pytest.mark.parametrize("name", ["torchrun", "bash"])
def test_ranks_end_with_their_launcher_and_with_nothing_else(tmp_path: Path, name: str):
    said = tmp_path / "said"
    with said.open("w") as output:
        command = [sys.executable, "-c", PARENT, name, RANK]
        parent = subprocess.Popen(command, env=ENVIRONMENT, stdout=output, start_new_session=True)
        try:
            await_text(said, f"{name == 'torchrun'}\n")
            parent.kill()
            parent.wait()
            if name == "torchrun":
                await_text(said, "True\nSIGTERM\n")
            else:
                time.sleep(0.5)
                assert said.read_text() == "False\n"
        finally:
            os.killpg(parent.pid, signal.SIGKILL) if name == "bash" else None


def await_text(file: Path, expected: str) -> None:
    deadline = time.monotonic() + 60
    while file.read_text() != expected:
        assert time.monotonic() < deadline, file.read_text()
        time.sleep(0.05)

"""Requests to stop are counted once; ranks end with their launcher, and know when another died; stalls are written."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import TrainerState

from evenkeel.trainer.run.callbacks.progress import Progress
from evenkeel.trainer.run.callbacks.stalls import StallWatchdog
from evenkeel.trainer.run.callbacks.stopping import StopAtRolloutBoundary
from evenkeel.trainer.run.heartbeat import HEARTBEAT
from tests.paths import ROOT
from tests.waiting import wait_until

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def stop(tmp_path: Path) -> Iterator[StopAtRolloutBoundary]:
    callback = StopAtRolloutBoundary(steps_per_block=2, any_rank=bool)
    state = SimpleNamespace(is_world_process_zero=True, global_step=0)
    callback.on_train_begin(SimpleNamespace(output_dir=str(tmp_path)), state, None)
    yield callback
    callback.on_train_end(None, state, None)


def edge(callback: StopAtRolloutBoundary, step: int) -> bool:
    """Whether the run stops, with a checkpoint, behind ``step`` of 10."""
    control = SimpleNamespace(should_save=False, should_training_stop=False, should_evaluate=False)
    callback.on_step_end(None, SimpleNamespace(global_step=step, max_steps=10), control)
    assert control.should_save == control.should_training_stop == callback.stopped
    return control.should_training_stop


def test_a_request_stops_at_the_next_edge_of_a_rollout_batch(stop: StopAtRolloutBoundary, capsys):
    assert not edge(stop, 2)
    signal.raise_signal(signal.SIGTERM)
    assert "Stopping after this rollout batch" in capsys.readouterr().out
    assert [edge(stop, 3), edge(stop, 4)] == [False, True]


def test_what_the_launcher_passes_on_again_counts_once(stop: StopAtRolloutBoundary, capsys):
    """Ctrl-C in a terminal reaches each rank twice within a moment: from the terminal, and from the launcher."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        signal.raise_signal(number)
    assert capsys.readouterr().out.count("Stopping") == 1
    assert edge(stop, 4)


@pytest.mark.parametrize("during", ["evaluation", "checkpoint"])
def test_a_request_during_an_evaluation_or_a_checkpoint_stops_after_it(stop: StopAtRolloutBoundary, during: str):
    """Not one rollout batch later."""
    assert not edge(stop, 2)
    signal.raise_signal(signal.SIGTERM)
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    after = stop.on_evaluate if during == "evaluation" else stop.on_save
    after(None, SimpleNamespace(global_step=2, max_steps=10), control)
    assert (control.should_training_stop, stop.stopped) == (True, True)
    assert control.should_save == (during == "evaluation")


RANK = """
import signal, sys, time
from evenkeel.trainer.run.processes import end_with_launcher, launcher, say
signal.signal(signal.SIGTERM, lambda number, frame: (print("SIGTERM", flush=True), sys.exit()))
end_with_launcher()
print(launcher() is not None, flush=True)
time.sleep(30)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[-1]])"


@pytest.mark.parametrize(
    ("words", "is_launcher"),
    [("torchrun", True), ("evenkeel launch", True), ("accelerate launch", True), ("evenkeel train", False)],
)
def test_ranks_end_with_their_launcher_and_with_nothing_else(tmp_path: Path, words: str, is_launcher: bool):
    said = tmp_path / "said"
    with said.open("w") as output:
        command = [sys.executable, "-c", PARENT, *words.split(), RANK]
        parent = subprocess.Popen(command, env=ENVIRONMENT, stdout=output, start_new_session=True)
        try:
            await_text(said, f"{is_launcher}\n")
            parent.kill()
            parent.wait()
            if is_launcher:
                await_text(said, "True\nSIGTERM\n")
            else:
                time.sleep(0.2)
                assert said.read_text() == "False\n"
        finally:
            os.killpg(parent.pid, signal.SIGKILL) if not is_launcher else None


def await_text(file: Path, expected: str) -> None:
    wait_until(lambda: file.read_text() == expected, file.read_text)


GLOO = "[/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:52619. This is typically caused by …"
LEFT_ALONE = """
import os, subprocess, sys, time
from evenkeel.trainer.run.processes import is_lost_connection, peer_died
os.environ["LOCAL_WORLD_SIZE"] = "2"
before = peer_died()
os.kill(int(sys.argv[1]), 9)
while not peer_died():  # the launcher has not reaped it, and it does not live
    time.sleep(0.01)
print(before, is_lost_connection(RuntimeError(sys.argv[2])), is_lost_connection(RuntimeError("shape mismatch")))
"""
LAUNCHER = """
import subprocess, sys
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
subprocess.run([sys.executable, "-c", sys.argv[2], str(other.pid), sys.argv[3]], timeout=60)
"""


def test_a_rank_whose_sibling_was_killed_knows_it():
    command = [sys.executable, "-c", LAUNCHER, "torchrun", LEFT_ALONE, GLOO]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
    assert result.stdout == "False True False\n", result.stderr


def verifier_without_end() -> None:
    re.match("(a+)+$", 22 * "a" + "b")  # holds the interpreter's lock for half a second or more


@pytest.mark.parametrize("moves", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_stacks_are_written_where_nothing_moves(tmp_path: Path, moves: bool) -> None:
    nothing: Any = None
    watchdog = StallWatchdog(tmp_path / "stalls", 2.0 if moves else 0.1)
    watchdog.on_train_begin(SimpleNamespace(process_index=0), nothing, nothing)
    if moves:
        for _ in range(12):
            time.sleep(0.25)
            watchdog.on_substep_end()
    else:
        verifier_without_end()
    watchdog.on_train_end(nothing, nothing, nothing)
    if moves:
        assert not (tmp_path / "stalls").exists()
    else:
        assert "in verifier_without_end" in (tmp_path / "stalls" / "rank-0.txt").read_text()


def test_steps_are_counted_from_1():
    nothing: Any = None
    Progress(lambda: "generate").on_step_begin(nothing, TrainerState(max_steps=4), nothing)
    assert HEARTBEAT.stage() == "step 1/4: generates completions"

"""A run says where it is, also where nothing moves and a thread holds the interpreter."""

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import TrainerState

from evenkeel.trainer.run.callbacks.progress import Progress
from evenkeel.trainer.run.callbacks.stalls import StallWatchdog
from evenkeel.trainer.run.heartbeat import HEARTBEAT


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
    Progress("accuracy", lambda: "generate").on_step_begin(nothing, TrainerState(max_steps=4), nothing)
    assert HEARTBEAT.stage() == "step 1/4: generates completions"

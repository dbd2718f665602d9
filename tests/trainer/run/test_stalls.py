"""A run without progress: the stacks of this rank and of its verifiers' processes; an interpreter that is held too."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenkeel.rewards import build_verifier, verifier_stacks
from evenkeel.rewards.isolation.workers import WorkerPool
from evenkeel.rewards.user_verifiers import UserVerifier
from evenkeel.trainer.run.callbacks.stalls import StallWatchdog
from tests.paths import ROOT


@contextmanager
def watched(folder: Path, seconds: float, **options: Any) -> Iterator[StallWatchdog]:
    watchdog = StallWatchdog(folder, seconds, aborts=False, **options)
    arguments = SimpleNamespace(process_index=0), SimpleNamespace(global_step=7), None
    watchdog.on_train_begin(*arguments)
    yield watchdog
    watchdog.on_train_end(*arguments)


def waits_in_a_named_function(text: Path) -> None:
    deadline = time.monotonic() + 20
    while not text.exists() or "processes of its verifiers" not in text.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_without_progress_the_stacks_are_written_and_the_place_is_said(tmp_path: Path, capsys):
    with watched(tmp_path / "stalls", 0.3):
        waits_in_a_named_function(tmp_path / "stalls" / "rank-0.txt")
        time.sleep(0.2)
    written = (tmp_path / "stalls" / "rank-0.txt").read_text()
    assert "no progress for 0 s at step 7" in written
    assert "in waits_in_a_named_function" in written
    assert written.count("=== ") == 1  # of one stall once
    said = capsys.readouterr().out
    assert "after optimizer step 7" in said
    assert f"{tmp_path / 'stalls'}/rank-*.txt" in said
    assert "stopping.stall_aborts: true would end it" in said


HELD = """
import re, sys
from pathlib import Path
from types import SimpleNamespace
from evenkeel.trainer.run.callbacks.stalls import StallWatchdog
watchdog = StallWatchdog(Path(sys.argv[1]), 0.5, aborts=True)
watchdog.on_train_begin(SimpleNamespace(process_index=0), SimpleNamespace(global_step=7), None)
def verifier_without_end():
    re.match("(a+)+$", 50 * "a" + "b")  # holds the interpreter's lock for years
verifier_without_end()
"""


@pytest.mark.slow
def test_an_interpreter_that_is_held_is_seen_from_c_and_aborted(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HELD, str(tmp_path / "stalls")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert "in verifier_without_end" in (tmp_path / "stalls" / "rank-0.txt").read_text()


@pytest.mark.slow
def test_the_stacks_of_busy_workers_and_of_a_users_verifier_are_there():
    pool = WorkerPool("tests.trainer.run.without_end:never_ends", cpu_seconds=60, wall_seconds=90, workers=1)
    judges = [
        lambda: pool.map([0]),
        lambda: UserVerifier(build_verifier("tests.trainer.run.without_end:sleeps")).judge_all(["a"], [None]),
    ]
    for judge in judges:
        threading.Thread(target=judge, daemon=True).start()
    deadline = time.monotonic() + 80
    while not ("in never_ends" in (stacks := verifier_stacks()) and "in sleeps" in stacks):
        assert time.monotonic() < deadline, stacks
        time.sleep(0.5)
    assert re.search(r"a user.s part\nprocess \d+:", stacks)

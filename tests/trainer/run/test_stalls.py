"""A run without progress writes where it is, also where a thread holds the interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

STALLED = """
import re, sys, threading, time
from pathlib import Path
from types import SimpleNamespace
from evenkeel.trainer.run.callbacks.stalls import StallWatchdog
folder, way = Path(sys.argv[1]), sys.argv[2]
watchdog = StallWatchdog(folder, 0.5)
watchdog.on_train_begin(SimpleNamespace(process_index=0), None, None)
def verifier_without_end():
    re.match("(a+)+$", (24 if way == "held" else 4) * "a" + "b")  # holds the interpreter's lock
    time.sleep(2 if way == "waits" else 0)
if way == "moves":
    for _ in range(8):
        time.sleep(0.25)
        watchdog.on_substep_end(None, None, None)
for _ in range(2):
    verifier_without_end()
    if way != "held":
        break
watchdog.on_train_end(None, None, None)
"""


SLOW = [pytest.param(way, marks=pytest.mark.slow) for way in ("waits", "moves")]


@pytest.mark.parametrize("way", ["held", *SLOW])
def test_the_stacks_are_written_where_nothing_moves(tmp_path: Path, way: str) -> None:
    command = [sys.executable, "-c", STALLED, str(tmp_path / "stalls"), way]
    result = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=120)
    assert result.returncode == 0, result.stderr
    if way == "moves":
        assert not (tmp_path / "stalls").exists()
    else:
        assert "in verifier_without_end" in (tmp_path / "stalls" / "rank-0.txt").read_text()

"""A rank that another left alone: known by the error, or by a launcher with fewer living ranks than it started."""

import os
import subprocess
import sys

import pytest

from tests.paths import ROOT

GLOO = "[/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:52619. This is typically caused by …"
RANK = """
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
    command = [sys.executable, "-c", LAUNCHER, "torchrun", RANK, GLOO]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert result.stdout == "False True False\n", result.stderr


@pytest.mark.parametrize(
    ("words", "is_launcher"),
    [(("evenkeel", "launch"), True), (("accelerate", "launch"), True), (("evenkeel", "train"), False)],
)
def test_a_rank_knows_the_launcher_that_started_it(words: tuple[str, ...], is_launcher: bool):
    asks = "from evenkeel.trainer.run.processes import launcher; print(launcher())"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {asks!r}])"
    said = subprocess.run([sys.executable, "-c", starts, *words], capture_output=True, text=True, check=True).stdout
    assert said.strip().isdigit() == is_launcher

"""The benchmark runs and has a line for every level that is here. Its numbers are no test's business."""

import os
import subprocess
import sys

import pytest

from tests.paths import ROOT


@pytest.mark.slow
def test_every_level_has_a_line() -> None:
    core = min(os.sched_getaffinity(0))
    command = [
        sys.executable,
        "-m",
        "scripts.benchmarks",
        "sandbox",
        "--cores",
        str(core),
        "--rounds",
        "2",
        "--runs",
        "4",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1][:2] == ["1", "cores,"]
    assert {"subprocess", "landlock_seccomp", "none"} <= {line[0] for line in lines[3:]}
    assert all(len(line) == 6 for line in lines[3:])

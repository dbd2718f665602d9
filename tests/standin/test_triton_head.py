"""TRL's head as on CUDA, Triton kernels and compact positions, in Triton's interpreter: it trains the same weights."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.standin import device

pytestmark = pytest.mark.slow
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "evenkeel"
TRITON = Path(os.environ.get("EVENKEEL_TRITON", CACHE / "triton"))


@pytest.mark.parametrize("arguments", [[], ["--cpu"]], ids=["stand-in", "cpu"])
def test_triton_trains_the_same_weights_as_torch(arguments: list[str]):
    if not (TRITON.exists() or importlib.util.find_spec("triton")):
        pytest.skip("needs triton: bash scripts/triton_environment.sh")
    if not arguments and (reason := device.why_not()):
        pytest.skip(reason)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TRITON)}
    command = [sys.executable, "-m", "tests.standin.triton_head", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == {"trl", "planned"}
    for each in found.values():
        assert each["difference"] < 1e-4 * each["moved"]

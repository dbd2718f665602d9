"""The step's own tests, unchanged, on the stand-in device."""

import os
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.standin import device

WHOLE = (
    "engine/test_skipped_scoring",
    "engine/test_sleep",
    "test_compact_generation",
    "test_compatibility",
    "test_device_waits",
    "test_evaluation",
    "test_full_disk",
    "test_judging",
    "test_microbatch_plan",
    "test_phases",
    "test_records",
    "test_structure",
)
"""Files of tests/trainer/step that pass there as they are. In the others some test builds CPU tensors for the device's
trainer, or asks accelerate for the CPU: they are added here once they take `trainer.accelerator.device`."""


@pytest.mark.slow
def test_the_steps_own_tests_pass_on_the_device():
    if (reason := device.why_not()) is not None:
        pytest.skip(reason)
    files = [f"tests/trainer/step/{name}.py" for name in WHOLE]
    command = [sys.executable, "-m", "pytest", "-p", "tests.standin.plugin", "-q", "-n", "0", *files]
    done = subprocess.run(
        [*command, "-m", "not slow and not gpu and not standin"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]

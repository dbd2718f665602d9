"""The tier's own test: it sees a device error that is planted in our code, and the CPU does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.standin.mutants import MUTANTS


@pytest.mark.standin
@pytest.mark.parametrize("name", MUTANTS)
def test_the_device_sees_a_planted_error(name: str, tmp_path: Path):
    error = MUTANTS[name].error(tmp_path)
    assert error is not None
    assert "same device" in error or error.startswith("No backend type")


@pytest.mark.slow
def test_the_cpu_sees_none_of_them():
    command = [sys.executable, "-m", "tests.standin", "--cpu"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.count("| not seen |") == len(MUTANTS)

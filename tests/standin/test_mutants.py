"""The tier's own test: it sees a device error that is planted in our code."""

from pathlib import Path

import pytest

from tests.standin.mutants import MUTANTS


@pytest.mark.standin
@pytest.mark.parametrize("name", MUTANTS)
def test_the_device_sees_a_planted_error(name: str, tmp_path: Path):
    error = MUTANTS[name].error(tmp_path)
    assert error is not None
    assert "same device" in error or error.startswith("No backend type")

"""The seconds of a run are those of all its parts, killed ones too, in its summary, its metrics and its reports."""

import shutil
import time
from pathlib import Path

import pytest

from evenkeel.trainer.run.record import run_time
from evenkeel.trainer.run.record.files import SECONDS
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.run_time import RunTime


def test_a_part_that_is_killed_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill leaves is the file as it was while the clock ran."""
    monkeypatch.setattr(run_time, "SECONDS_BETWEEN_WRITES", 0.02)
    for name in ("run", "killed"):
        (tmp_path / name).mkdir()
    with RunTime(tmp_path / "run"):
        time.sleep(0.3)
        shutil.copy(tmp_path / "run" / SECONDS, tmp_path / "killed")
    killed = RunRecord(tmp_path / "killed").seconds
    assert 0 < killed <= RunRecord(tmp_path / "run").seconds
    with RunTime(tmp_path / "killed"):
        pass
    first, _ = RunRecord(tmp_path / "killed").parts
    assert first["seconds"] == killed

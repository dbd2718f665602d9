"""The seconds of a run are those of all its parts, killed ones too, in its summary, its metrics and its reports."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenkeel.trainer.command.train import main
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.run.record.files import SECONDS, DamagedFileError
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.run_time import RunTime
from tests.paths import ROOT
from tests.scripts.test_train import metrics, run_file

__all__ = ["run_file"]

UNTIL_KILLED = """
import sys, time
from pathlib import Path
from evenkeel.trainer.run.record import run_time
run_time.SECONDS_BETWEEN_WRITES = 0.02
with run_time.RunTime(Path(sys.argv[1])):
    print("begun", flush=True)
    time.sleep(60)
"""


def spent(run: Path, seconds: float) -> RunTime:
    with RunTime(run) as clock:
        time.sleep(seconds)
    return clock


def test_parts_add_up(tmp_path: Path) -> None:
    assert spent(tmp_path, 0.1).earlier == 0
    first = RunRecord(tmp_path).seconds
    assert first == pytest.approx(0.1, abs=0.09)
    assert spent(tmp_path, 0.2).earlier == first
    parts = RunRecord(tmp_path).parts
    assert parts is not None
    assert [part["seconds"] >= wanted for part, wanted in zip(parts, (0.1, 0.2), strict=True)] == [True, True]
    assert RunRecord(tmp_path).seconds == sum(part["seconds"] for part in parts)
    assert [path.name for path in tmp_path.iterdir()] == [SECONDS]


def test_a_part_that_is_killed_counts(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UNTIL_KILLED, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.6)
        process.kill()
    killed = RunRecord(tmp_path).seconds
    assert killed is not None
    assert 0.3 < killed < 10
    assert spent(tmp_path, 0.01).earlier == killed


def test_only_one_rank_writes_and_all_know(tmp_path: Path) -> None:
    spent(tmp_path, 0.02)
    before = (tmp_path / SECONDS).read_bytes()
    with RunTime(tmp_path, writes=False) as clock:
        assert clock.earlier == RunRecord(tmp_path).seconds
    assert (tmp_path / SECONDS).read_bytes() == before


@pytest.mark.parametrize("text", ["", "[1]", '{"parts": 3}', '{"parts": [{"began": "x"}]}', '{"parts": [4]}'])
def test_seconds_that_were_edited_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / SECONDS).write_text(text)
    with pytest.raises(DamagedFileError):
        RunTime(tmp_path)


def test_a_cells_device_seconds_hold_what_was_discarded(tmp_path: Path) -> None:
    """90 s of its two parts and 7 + 5 s of two attempts without a checkpoint, on 4 processes: 4 · 102."""
    cell = CellDirectory(tmp_path)
    for seconds in (7.0, 5.0):
        cell.run.mkdir()
        (cell.run / SECONDS).write_text(json.dumps({"parts": [{"began": "", "seconds": seconds}]}))
        cell.delete_uncheckpointed_run()
    cell.run.mkdir()
    (cell.run / "summary.json").write_text(json.dumps({"wall_seconds": 90.0, "parts": 2}))
    (cell.run / "manifest.json").write_text(json.dumps({"world_size": 4}))
    for number in (1, 2):  # one was killed, and nobody wrote when
        (tmp_path / f"attempt-{number}.json").write_text(json.dumps({"started": "2026-01-01T10:00:00+00:00"}))
    assert RecordedRun(cell.run, "grpo", 0).device_seconds == 4 * 102


@pytest.mark.slow
def test_a_resumed_run_reports_the_time_of_all_its_parts(run_file: Path, tmp_path: Path) -> None:
    run, shared = tmp_path / "run", ["evaluation.before=false", "data.test=null", "--resume", "auto"]
    assert main([str(run_file), "trl.max_steps=2", *shared]) == 0
    first, before = json.loads((run / "summary.json").read_text()), metrics(run)[-1]["train_runtime"]
    assert (first["parts"], first["wall_seconds"]) == (1, RunRecord(run).seconds)
    assert main([str(run_file), "trl.max_steps=4", *shared]) == 0
    both, last = json.loads((run / "summary.json").read_text()), metrics(run)[-1]
    parts = RunRecord(run).parts
    assert parts is not None
    assert both["parts"] == len(parts) == 2
    assert both["wall_seconds"] == RunRecord(run).seconds > first["wall_seconds"] == parts[0]["seconds"]
    assert before < last["train_runtime"] < both["wall_seconds"] + 0.1
    assert last["train_steps_per_second"] == pytest.approx(4 / last["train_runtime"], rel=0.05, abs=0.001)

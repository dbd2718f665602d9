"""Rollouts on disk: each batch once, the same with and without an interruption."""

import resource
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.record.rollouts import RolloutFiles

ROW: dict[str, list[Any]] = {
    "batch": [3],
    "row": [0],
    "completion": ["a lone \ud800 surrogate"],
    "completion_ids": [[5, 6]],
    "advantages": [None],
    "rewards/format": [None],
    "format/reason": [None],
    "correct": [True],
}


def test_an_interrupted_run_leaves_the_files_of_one_that_was_not(tmp_path: Path):
    """Killed in batch 5, resumed from batch 3; another rank's files are its own."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder, parts in ((whole, [range(7)]), (cut, [range(5), range(3, 7)])):
        for part in parts:
            files = RolloutFiles(folder, rank=0)
            files.start(part[0])
            for number in part:
                files.write(number, {**ROW, "step": [number]})
    RolloutFiles(cut, rank=1).start(0)
    assert {path.name: path.read_bytes() for path in cut.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }


def test_a_full_disk_leaves_a_batch_out_and_the_next_one_is_written(tmp_path: Path, capsys):
    files = RolloutFiles(tmp_path / "rollouts", rank=0)
    files.start(0)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
    try:
        files.write(0, ROW)
        files.write(1, ROW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    files.write(2, ROW)
    assert [path.name for path in (tmp_path / "rollouts").iterdir()] == ["batch-000002-rank-0.parquet"]
    assert files.left_out == 2
    assert capsys.readouterr().out.count("rollouts are left out until there is") == 1

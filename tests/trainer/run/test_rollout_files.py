"""Rollouts on disk: each batch once, the same with and without an interruption."""

from pathlib import Path
from typing import Any

from evenkeel.trainer.run.record.rollouts import begin_rollouts, rollout_file, write_rollouts

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
            begin_rollouts(folder, part[0], 0)
            for number in part:
                write_rollouts(rollout_file(folder, number, 0), {**ROW, "step": [number]})
    begin_rollouts(cut, 0, rank=1)
    assert {path.name: path.read_bytes() for path in cut.iterdir()} == {
        path.name: path.read_bytes() for path in whole.iterdir()
    }

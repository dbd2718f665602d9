"""Rollouts on disk: bounded, each batch once, the same with and without an interruption."""

import resource
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.trainer.run.record import rollouts as rollout_files
from evenkeel.trainer.run.record.rollouts import RolloutFiles, read_every, write_rollouts, written_files

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


@pytest.fixture(autouse=True)
def _files_of_given_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches whose columns are a size are files of that size."""

    def write(path: Path, columns: Any) -> None:
        if isinstance(columns, dict):
            write_rollouts(path, columns)
        else:
            path.write_bytes(b"x" * columns)

    monkeypatch.setattr(rollout_files, "write_rollouts", write)


def run(folder: Path, sizes: list[int], limit: int, first: int = 0, last: int | None = None) -> RolloutFiles:
    files = RolloutFiles(folder, limit, bool, 0)
    files.start(first)
    for number in range(first, len(sizes) if last is None else last):
        files.write(number, sizes[number])  # type: ignore[arg-type]
    return files


def contents(folder: Path) -> dict[str, Any]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=24), st.integers(40, 200), st.data())
def test_an_interrupted_run_leaves_the_files_of_one_that_was_not(sizes: list[int], limit: int, data: Any):
    checkpoint = data.draw(st.integers(0, len(sizes)))
    killed = data.draw(st.integers(checkpoint, len(sizes)))
    with tempfile.TemporaryDirectory() as place:
        whole, cut = Path(place) / "whole", Path(place) / "cut"
        files = run(whole, sizes, limit)
        run(cut, sizes, limit, last=killed)
        (cut / ".batch-000009-rank-0.parquet.draft").write_bytes(b"half a file")
        run(cut, sizes, limit, first=checkpoint)
        assert {name: data for name, data in contents(cut).items() if not name.startswith(".")} == contents(whole)
        kept = [number for number, _, _ in written_files(whole)]
        assert kept == [number for number in range(len(sizes)) if number % files.every == 0]
        assert sum(files.sizes.values()) <= limit or kept == [0]
        assert read_every(whole) == files.every


def test_ranks_thin_out_together(tmp_path: Path):
    """Rank 1 has space enough, but deletes what rank 0 must: else its rows would be parts of groups."""
    files = RolloutFiles(tmp_path, 1_000, lambda flag: True if len(files.sizes) > 2 else flag, 1)
    files.start(0)
    for number in range(3):
        files.write(number, 10)  # type: ignore[arg-type]
    assert sorted(files.sizes) == [0, 2]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == []  # rank 0 says so


def test_a_full_disk_leaves_a_batch_out_and_the_next_one_is_written(tmp_path: Path, capsys):
    files = RolloutFiles(tmp_path / "rollouts", 2**20, lambda flag: flag, rank=0)
    files.start(0)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
    try:
        files.write(0, ROW)
        files.write(1, ROW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    files.write(2, ROW)
    assert sorted(path.name for path in (tmp_path / "rollouts").iterdir()) == [
        "batch-000002-rank-0.parquet",
        "kept.json",
    ]
    assert files.left_out == 2
    assert capsys.readouterr().out.count("rollouts are left out until there is") == 1

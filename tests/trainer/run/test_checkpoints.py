"""A checkpoint counts when it is whole; what is wrong with another is named, and an older one is taken."""

import json
import os
from pathlib import Path

import pytest

from evenkeel.trainer.run.record.checkpoints import (
    fault_of,
    files_of,
    fingerprints,
    newest_good_checkpoint,
    write_checkpoint_manifest,
)

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # FIPS 180's example of no bytes


RESTORED = ["evenkeel.pt", "optimizer.pt", "scheduler.pt", "rng_state_1.pth", "trainer_state.json"]


def saved(run: Path, step: int) -> Path:
    """A checkpoint of two ranks, as small as can be."""
    checkpoint = run / f"checkpoint-{step}"
    checkpoint.mkdir(parents=True)
    for name in ("model.safetensors", *RESTORED[:-1], "rng_state_0.pth"):
        (checkpoint / name).write_bytes(name.encode() * 50)
    (checkpoint / "sharded").mkdir()
    (checkpoint / "sharded" / "part.bin").write_bytes(b"")
    (checkpoint / "trainer_state.json").write_text(json.dumps({"global_step": step, "max_steps": 100}))
    return listed(checkpoint)


def listed(checkpoint: Path) -> Path:
    """``checkpoint`` with the manifest of its files as they are."""
    write_checkpoint_manifest(checkpoint, fingerprints(checkpoint, files_of(checkpoint)), world_size=2)
    return checkpoint


def test_a_whole_checkpoint_has_no_fault_and_lists_every_file(tmp_path: Path):
    checkpoint = saved(tmp_path, 4)
    assert fault_of(checkpoint) == ""
    record = json.loads((checkpoint / "manifest.json").read_text())
    assert (record["step"], record["world_size"]) == (4, 2)
    there = {path.relative_to(checkpoint).as_posix() for path in checkpoint.rglob("*.*")}
    assert set(record["files"]) == there - {"manifest.json"}
    assert record["files"]["sharded/part.bin"] == {"bytes": 0, "sha256": EMPTY_SHA256}


def flip_one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


DAMAGES = {
    "the optimizer is missing": ("optimizer.pt", Path.unlink, "optimizer.pt is missing"),
    "the scheduler is truncated": ("scheduler.pt", lambda path: os.truncate(path, 7), "has 7 bytes and was saved with"),
    "one bit of the weights": ("model.safetensors", flip_one_bit, "model.safetensors does not hold what was saved"),
    "killed before the end": ("manifest.json", Path.unlink, "not saved to the end"),
    "half a manifest": ("manifest.json", lambda path: os.truncate(path, 20), "manifest.json cannot be read"),
}


@pytest.mark.parametrize(("name", "damage", "expected"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_next_older_good_one_taken(tmp_path: Path, name, damage, expected):
    old, good, newest = (saved(tmp_path, step) for step in (8, 9, 10))
    damage(newest / name)
    found, faults = newest_good_checkpoint(tmp_path)
    assert found == good
    assert [*faults] == [newest]
    assert expected in faults[newest]
    damage(good / name)
    assert newest_good_checkpoint(tmp_path)[0] == old
    damage(old / name)
    assert newest_good_checkpoint(tmp_path)[0] is None


def unlisted(checkpoint: Path, name: str) -> None:
    """Take ``name`` out of the manifest, which is whole otherwise."""
    record = json.loads((checkpoint / "manifest.json").read_text())
    del record["files"][name]
    (checkpoint / "manifest.json").write_text(json.dumps(record))


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "absent"])
@pytest.mark.parametrize("name", RESTORED)
def test_what_is_restored_and_not_listed_is_a_fault(tmp_path: Path, name: str, is_there: bool):
    """Nobody knows whether it is what was saved. Without ``evenkeel.pt`` strategies would begin anew, in silence."""
    good, newest = (saved(tmp_path, step) for step in (9, 10))
    assert newest_good_checkpoint(tmp_path)[0] == newest
    unlisted(newest, name)
    if not is_there:
        (newest / name).unlink()
    found, faults = newest_good_checkpoint(tmp_path)
    assert found == good
    assert Path(name).stem in faults[newest]

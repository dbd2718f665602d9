"""Verified checkpoints: each carries the sizes and SHA-256 of the files of all ranks."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.record.files import (
    MANIFEST,
    OWN_STATE,
    TRAINER_STATE,
    CheckpointRecord,
    DamagedFileError,
    read_record,
    write_json,
)

_NAME = re.compile(r"checkpoint-(\d+)")


def step_of(checkpoint: Path) -> int:
    """The optimizer step at which ``checkpoint`` was saved."""
    return int(checkpoint.name.rpartition("-")[2])


def checkpoints_of(run: Path) -> list[Path]:
    """All folders ``checkpoint-<step>`` of ``run``, the newest first, whole or not."""
    found = [path for path in run.glob("checkpoint-*") if path.is_dir() and _NAME.fullmatch(path.name)]
    return sorted(found, key=step_of, reverse=True)


def files_of(checkpoint: Path) -> list[str]:
    """The names of all files of ``checkpoint`` but its manifest, relative to it, in order."""
    files = (path for path in checkpoint.rglob("*") if path.is_file())
    return sorted(name for path in files if (name := path.relative_to(checkpoint).as_posix()) != MANIFEST)


def fingerprints(checkpoint: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Name → size in bytes and SHA-256 of each file; flushes the file to the disk."""
    found = {}
    for name in names:
        with (checkpoint / name).open("rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            found[name] = {"bytes": file.tell(), "sha256": digest}
    return found


def write_checkpoint_manifest(checkpoint: Path, files: Mapping[str, Mapping[str, Any]], world_size: int) -> None:
    """Write ``manifest.json`` atomically: it makes the checkpoint valid."""
    record = {"step": step_of(checkpoint), "world_size": world_size, "files": dict(sorted(files.items()))}
    write_json(checkpoint / MANIFEST, record)


def fault_of(checkpoint: Path) -> str:
    """What is wrong with ``checkpoint``; empty where its files are what was saved, and a run resumes from them exactly.

    Without a file that its manifest does not list, a run would resume silently with a new optimizer, new strategies or
    other random numbers.
    """
    if not (checkpoint / MANIFEST).exists():
        return "it was not saved to the end (it has no manifest.json)"
    try:
        record = read_record(checkpoint / MANIFEST, CheckpointRecord)
    except DamagedFileError as error:
        return f"its manifest.json cannot be read ({str(error).partition(': ')[2].rstrip('. ')})"
    files = record["files"]
    if absent := [pattern for pattern in _restored(record) if not any(fnmatch(name, pattern) for name in files)]:
        return f"its manifest.json does not list {' and '.join(absent)}"
    for name, saved in files.items():
        path = checkpoint / name
        if not path.is_file():
            return f"{name} is missing"
        if (size := path.stat().st_size) != saved["bytes"]:
            return f"{name} has {size:,} bytes and was saved with {saved['bytes']:,}"
    for name, saved in files.items():
        if fingerprints(checkpoint, [name])[name]["sha256"] != saved["sha256"]:
            return f"{name} does not hold what was saved (its SHA-256 differs)"
    return ""


def _restored(record: Mapping[str, Any]) -> list[str]:
    """Patterns of the files that a run resumes from, besides the weights; DeepSpeed keeps optimizer and schedule."""
    world_size = record["world_size"]
    ranks = ["rng_state.pth"] if world_size == 1 else [f"rng_state_{rank}.pth" for rank in range(world_size)]
    engine = any(name.startswith("global_step") for name in record["files"])
    return [TRAINER_STATE, OWN_STATE, *ranks, *([] if engine else ["scheduler.pt", "optimizer*"])]


def newest_good_checkpoint(run: Path) -> tuple[Path | None, dict[Path, str]]:
    """The newest checkpoint of ``run`` without a fault, and the fault of each newer one."""
    faults: dict[Path, str] = {}
    for checkpoint in checkpoints_of(run):
        if not (fault := fault_of(checkpoint)):
            return checkpoint, faults
        faults[checkpoint] = fault
    return None, faults


def set_aside(checkpoint: Path) -> Path:
    """Rename a broken checkpoint to ``broken-checkpoint-<step>``: it must not count when old ones are deleted."""
    aside = checkpoint.with_name(f"broken-{checkpoint.name}")
    number = 1
    while aside.exists():
        number += 1
        aside = checkpoint.with_name(f"broken-{checkpoint.name}-{number}")
    return checkpoint.rename(aside)

"""The files of a run: their names, what they hold, and how they are read and written.

A file that was emptied, cut short or edited is refused by name; its content is not guessed.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from evenkeel.errors import Refusal

CONFIG = "config.yaml"
LOCK = "owner.lock"
MANIFEST = "manifest.json"
"""Of a run, and of each of its checkpoints."""
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
SUMMARY_TEXT = "summary.md"
REWARD_CURVE = "reward_curve.png"
SECONDS = "seconds.json"
WANDB_RUN_ID = "wandb_run_id.txt"
"""A run's name at W&B."""
EVALUATIONS = "evaluations"
"""Folder with a folder for each held-out set."""
ROLLOUTS = "rollouts"
"""Folder of `evenkeel.trainer.run.record.rollouts`."""
TRAINER_STATE = "trainer_state.json"
"""In each checkpoint, written by transformers."""
OWN_STATE = "evenkeel.pt"
"""In each checkpoint, written by `evenkeel.trainer.step.checkpoint`."""

AS_WRITTEN = "Bring it back as it was written."
"""What to do with a damaged file."""

OPEN = ConfigDict(extra="allow", strict=True)
"""Of a record: further keys are allowed, types are exact."""


class DamagedFileError(Refusal):
    """A file that does not hold what was written there; the message names it, and what to do."""


@with_config(OPEN)
class CheckpointRecord(TypedDict):
    """``manifest.json`` of a checkpoint."""

    step: int
    world_size: int
    files: dict[str, dict[str, Any]]
    """Name → ``bytes`` and ``sha256``."""


@with_config(OPEN)
class StateRecord(TypedDict):
    """``trainer_state.json`` of a checkpoint, as far as we read it."""

    global_step: int
    max_steps: int
    best_model_checkpoint: NotRequired[str | None]


@with_config(OPEN)
class SecondsRecord(TypedDict):
    """``seconds.json`` of a run."""

    parts: list[dict[str, Any]]
    """Each from its start or a checkpoint to a stop: ``began`` and ``seconds``."""


@with_config(OPEN)
class EvaluationRecord(TypedDict):
    """``evaluations/<dataset>/step-<n>.json``; besides these keys, metrics with their intervals."""

    n_items: int
    k: int
    temperature: float | None
    interval: str


def file_fault(path: Path, most_bytes: float) -> str | None:
    """Why a file is not read: too large, or a pipe or device, which may never end; ``None``: no fault, or no file."""
    try:
        if path.is_file():
            size = path.stat().st_size
            return f"has {size:,} bytes, and at most {most_bytes:,} are read" if size > most_bytes else None
        is_odd = path.exists() and not path.is_dir()
    except OSError:  # as of a name that is too long; what reads it says so
        return None
    return "is a pipe, a device or a socket, not a regular file" if is_odd else None


def files_fault(path: Path) -> str | None:
    """The first `file_fault` but for size, after the file's name: of a file, or in a folder, two levels deep."""
    for file in [path, *path.glob("*"), *path.glob("*/*")]:
        if fault := file_fault(file, math.inf):
            return f"{file} {fault}"
    return None


def bytes_of(path: Path, instead: str = AS_WRITTEN) -> bytes:
    """The bytes of a file; where it cannot be read, a `DamagedFileError` that says what to do ``instead``."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error.strerror}. {instead}") from error


def read_record(path: Path, kind: Any, instead: str = AS_WRITTEN) -> dict[str, Any]:
    """The object in a JSON file, checked to be of ``kind``; ``instead`` says what to do where it is not.

    Raises:
        DamagedFileError: the file cannot be read, is not JSON, or lacks what a file of its kind holds.
    """
    content = bytes_of(path, instead)
    try:
        checked: dict[str, Any] = TypeAdapter(kind).validate_python(json.loads(content))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise DamagedFileError(f"{path} is damaged: {place}: {first['msg'].lower()}. {instead}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is damaged, it is not JSON: {error}. {instead}") from error
    return checked


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file atomically, even if several processes write it; its folder is made if missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        with draft.open("wb") as file:
            file.write(text.encode(errors="backslashreplace"))  # a lone surrogate becomes JSON's own escape
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """The pyarrow table in a file, only those of ``columns`` that it has; a `DamagedFileError` where it is broken."""
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        there = file.schema_arrow.names
        return file.read(columns=None if columns is None else [name for name in columns if name in there])
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise DamagedFileError(f"{path} is damaged: {str(error).splitlines()[0]} {AS_WRITTEN}") from error

"""The log of a run, whoever wrote it: lines of a JSONL file, transformers' trainer_state.json, W&B's offline file.

An unreadable file raises `Refusal`; unreadable parts are listed in `Record.damaged`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.doctor.log import HELD_OUT, NAMES, number
from evenkeel.trainer.run.record.files import bytes_of
from evenkeel.trainer.run.record.wandb_file import records, row_of

_KNOWN = {key for keys in NAMES.values() for key in keys}
_LOOKED_FOR = (
    "metrics.jsonl",
    "trainer_state.json",
    "checkpoint-*/trainer_state.json",
    "*.wandb",
    "*run-*/run-*.wandb",
    "wandb/*run-*/run-*.wandb",
    "*.jsonl",
)
"""Patterns of a folder's logs: the first with a match counts, and of its matches the newest."""


@dataclass(frozen=True)
class Record:
    """A log as it was read.

    Attributes:
        lines: step and logged numbers, in the order of the file.
        damaged: sentences on the parts that could not be read.
    """

    path: Path
    lines: list[tuple[int, Mapping[str, Any]]]
    damaged: list[str]


def read(path: str | Path) -> Record:
    """The log in ``path``, a file or a run's folder; a `Refusal` where nothing in it is a metric that a rule reads."""
    file = _file_of(Path(path))
    if file.exists() and not file.is_file():
        raise Refusal(f"{file} is not a regular file. Name a log.")
    content = bytes_of(file)
    damaged: list[str] = []
    reader = _wandb if file.suffix == ".wandb" else _trainer_state if file.suffix == ".json" else _json_lines
    lines: list[tuple[int, Mapping[str, Any]]] = []
    for raw in reader(content, file, damaged):
        lines.append(_line(raw, lines[-1][0] + 1 if lines else 1))
    logged = {key for _, line in lines for key in line}
    held_out = [key for key in logged for kind in HELD_OUT if kind.fullmatch(key)]
    if not held_out and not logged & _KNOWN:
        where = f" ({damaged[0]})" if damaged else ""
        raise Refusal(
            f"{file}: no line has a metric that a rule reads, such as reward{where}. Name a metrics.jsonl, "
            "trainer_state.json, run-*.wandb, or the file of verl's logger `file`."
        )
    return Record(file, lines, damaged)


def _file_of(path: Path) -> Path:
    if not path.exists():
        raise Refusal(f"{path} does not exist. Name a run's folder, or the file with its metrics.")
    if not path.is_dir():
        return path
    for pattern in _LOOKED_FOR:
        if found := [file for file in path.glob(pattern) if file.is_file()]:
            return max(found, key=_age)
    raise Refusal(f"{path} holds no log of a run: none of {', '.join(_LOOKED_FOR)}.")


def _age(file: Path) -> tuple[list[int], float]:
    """Orders checkpoints by their step and W&B's folders by the date in their names, then files by their time."""
    return [int(digits) for digits in re.findall(r"\d+", file.parent.name)[:2]], file.stat().st_mtime


def _line(raw: Mapping[str, Any], next_step: int) -> tuple[int, Mapping[str, Any]]:
    """Step and numbers of one line: ``train/`` of W&B is removed from names, ``data`` of verl unpacked.

    A line without a step gets ``next_step``.
    """
    inner = raw.get("data")
    flat = {**raw, **inner} if isinstance(inner, dict) else raw
    numbers = {key.removeprefix("train/"): value for key, value in flat.items() if number(value) is not None}
    steps = [number(flat.get(key)) for key in ("step", "train/global_step", "training/global_step", "_step")]
    step = next((step for step in steps if step is not None and 0 <= step < 2**53), next_step)
    return int(step), numbers


def _json_lines(content: bytes, file: Path, damaged: list[str]) -> Iterator[Mapping[str, Any]]:
    for place, line in enumerate(content.splitlines(), start=1):
        entry = _json(line)
        if isinstance(entry, dict):
            yield entry
        elif line.strip():
            damaged.append(f"line {place} is no JSON object")


def _trainer_state(content: bytes, file: Path, damaged: list[str]) -> Iterator[Mapping[str, Any]]:
    state = _json(content)
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise Refusal(f"{file} is cut off or has no list log_history.")
    for place, entry in enumerate(state["log_history"]):
        if isinstance(entry, dict):
            yield entry
        else:
            damaged.append(f"log_history[{place}] is no object")


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _wandb(content: bytes, file: Path, damaged: list[str]) -> Iterator[Mapping[str, Any]]:
    """The history of W&B's file: the lines of one optimizer step put together."""
    if not content.startswith(b":W&B"):
        raise Refusal(f"{file} does not begin as a file of W&B does.")
    joined = dict[str, Any]()
    for row in map(row_of, records(content, damaged)):
        if joined and row.get("train/global_step", -1) == joined.get("train/global_step"):
            joined |= row
        elif row:
            if joined:
                yield joined
            joined = row
    if joined:
        yield joined

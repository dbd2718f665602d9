"""What other hands can do to a file, by its kind: damages by name, each a function of the file."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet
from ruamel.yaml import YAML

Damage = Callable[[Path], object]
DEEP = "[" * 3000 + "]" * 3000


def damages(file: Path) -> Iterator[tuple[str, Damage]]:
    """Every damage of ``file`` with its name."""
    whole = file.read_bytes()
    yield "empty", lambda path: path.write_bytes(b"")
    yield "half", lambda path: path.write_bytes(whole[: len(whole) // 2])
    yield "foreign bytes", lambda path: path.write_bytes(foreign(len(whole)))
    yield "missing", Path.unlink
    yield "a folder", lambda path: (path.unlink(), path.mkdir())
    if file.suffix == ".json":
        yield from _of_json(file, write=lambda path, data: path.write_text(json.dumps(data)))
    elif file.suffix == ".yaml":
        yield from _of_json(file, write=_write_yaml)
    elif file.suffix == ".jsonl":
        yield from _of_lines(file)
    elif file.suffix == ".parquet":
        yield from _of_table(file)


def foreign(length: int) -> bytes:
    """Random bytes that are no UTF-8."""
    return b"\xff\xfe\x00" + random.Random(length).randbytes(max(length, 8))


def _write_yaml(path: Path, data: Any) -> None:
    YAML(typ="safe").dump(data, path)


def _read(file: Path) -> Any:
    return json.loads(file.read_text()) if file.suffix == ".json" else YAML(typ="safe").load(file.read_text())


def _wrong(value: Any) -> Any:
    """A value of another type than ``value``'s."""
    return (
        3 if isinstance(value, list | str) else ["wrong"] if isinstance(value, dict | type(None)) else {"wrong": "type"}
    )


def _of_json(file: Path, write: Callable[[Path, Any], object]) -> Iterator[tuple[str, Damage]]:
    data = _read(file)
    for name, other in {"a list": [data], "a text": "text", "a number": 7, "null": None, "an empty object": {}}.items():
        yield name, partial(write, data=other) if write is _write_yaml else lambda path, other=other: write(path, other)
    yield "3,000 brackets", lambda path: path.write_text(DEEP)
    if not isinstance(data, dict):
        return
    for key in data:
        without = {name: value for name, value in data.items() if name != key}
        yield f"without {key}", lambda path, data=without: write(path, data)
        changed = {**data, key: _wrong(data[key])}
        yield f"{key} of another type", lambda path, data=changed: write(path, data)
        inside = data[key][0] if isinstance(data[key], list) and data[key] else data[key]
        for name in inside if isinstance(inside, dict) and len(inside) < 30 else ():
            for what, change in (("without", _without), ("another type of", _with_wrong)):
                changed = copy.deepcopy(data)
                place = changed[key][0] if isinstance(changed[key], list) else changed[key]
                change(place, name)
                yield f"{what} {key}.{name}", lambda path, data=changed: write(path, data)


def _without(place: dict[str, Any], name: str) -> None:
    del place[name]


def _with_wrong(place: dict[str, Any], name: str) -> None:
    place[name] = _wrong(place[name])


def _of_lines(file: Path) -> Iterator[tuple[str, Damage]]:
    lines = file.read_bytes().splitlines()
    middle = json.loads(lines[len(lines) // 2])
    others: dict[str, bytes] = {
        "foreign": foreign(80).replace(b"\n", b""),
        "half": lines[len(lines) // 2][:30],
        "brackets": DEEP.encode(),
        "a list": b"[1, 2]",
        "a number": b"7",
        "without step": json.dumps({key: value for key, value in middle.items() if key != "step"}).encode(),
        "a text for step": json.dumps({**middle, "step": "two"}).encode(),
        "true for step": json.dumps({**middle, "step": True}).encode(),
        "infinity for step": json.dumps({**middle, "step": float("inf")}).encode(),
        "texts for numbers": json.dumps(
            {key: value if key == "step" else "x" for key, value in middle.items()}
        ).encode(),
        "lists for numbers": json.dumps(
            {key: value if key == "step" else [1] for key, value in middle.items()}
        ).encode(),
    }
    for place in (0, len(lines) // 2, len(lines) - 1):
        for name, other in others.items():
            text = b"\n".join([*lines[:place], other, *lines[place + 1 :]]) + b"\n"
            yield f"line {place + 1} of {len(lines)} {name}", lambda path, text=text: path.write_bytes(text)


def _of_table(file: Path) -> Iterator[tuple[str, Damage]]:
    table = parquet.read_table(file)
    yield "no rows", lambda path: parquet.write_table(table.slice(0, 0), path)
    yield "no columns", lambda path: parquet.write_table(pyarrow.table({"other": np.arange(3)}), path)
    for name in table.column_names:
        yield f"without {name}", lambda path, name=name: parquet.write_table(table.drop_columns([name]), path)
        kind = table.schema.field(name).type
        other = ["x"] * len(table) if not pyarrow.types.is_string(kind) else [3] * len(table)
        index = table.column_names.index(name)
        changed = table.set_column(index, name, pyarrow.array(other))
        yield f"{name} of another type", lambda path, changed=changed: parquet.write_table(changed, path)
        empty = table.set_column(index, name, pyarrow.array([None] * len(table), type=kind))
        yield f"{name} without values", lambda path, empty=empty: parquet.write_table(empty, path)

"""The file that W&B writes of a part of a run, ``run-<id>.wandb``; wandb itself has no reader of it in Python."""

import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from zlib import crc32


def records(content: bytes, damaged: list[str]) -> Iterator[Any]:
    """W&B's records in the bytes of a file, up to its end or to where it is damaged, which ``damaged`` then says.

    The format is LevelDB's log: 7 bytes, then blocks of 32,768 with pieces of records. A piece has a checksum, its
    length and its kind: a whole record (1), the first (2), a middle (3) or the last (4) piece of one.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    position, record = 7, b""
    while position < len(content):
        left = 32768 - position % 32768
        if left < 7:
            position += left
            continue
        head, start = content[position : position + 7], position + 7
        checksum, length, kind = struct.unpack("<IHB", head.ljust(7, b"\0"))
        piece = content[start : start + length]
        if crc32(piece, crc32(bytes([kind]))) != checksum:
            damaged.append(f"from byte {position:,} on it is cut off or damaged")
            break
        position = start + length
        record = piece if kind in (1, 2) else record + piece
        if kind in (1, 4):
            yield Record.FromString(record)


def row_of(record: Any) -> dict[str, Any]:
    """What one call of ``wandb.log`` wrote: name → value, ``name/key`` in a mapping. Of another record nothing."""
    return {item.key or "/".join(item.nested_key): value_of(item) for item in record.history.item}


def value_of(item: Any) -> Any:
    """The value of an item: JSON in older versions of wandb, a field of its type in newer ones."""
    for field, value in item.ListFields():
        with suppress(ValueError, RecursionError):
            if field.name not in ("key", "nested_key"):
                return json.loads(value) if field.name in ("json", "value_json") else value
    return None

"""Unpacking of published files: JSON in strings, arrays, and compressed pickled strings."""

import base64
import io
import json
import pickle
import zlib
from collections.abc import Mapping
from typing import Any

from evenkeel.rewards.verifiers.code_tests.kinds import UnusableTestsError

# Bytes; the largest published set of hidden tests unpacks to a fraction of it.
LONGEST_UNPACKED = 1 << 29


def unpacked(value: Any, where: str) -> Any:
    """``value`` unpacked: JSON text is parsed, also compressed; an array becomes a list; other values are unchanged.

    Raises:
        UnusableTestsError: a text that is neither; the message names ``where``.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, str):
        return value
    text = value.lstrip()
    try:
        return _json(text) if text[:1] in tuple('[{"') else _json(_decompressed(text))
    except (ValueError, zlib.error, EOFError, pickle.UnpicklingError, RecursionError) as error:
        raise UnusableTestsError(f"{where} is neither JSON nor compressed JSON, {text[:30]!r}: {error}") from error


def sequence(value: Any) -> list[Any] | None:
    """``value`` as a list if it is a list, tuple or array; else ``None``."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, list | tuple) else None


def text_of(row: Mapping[str, Any], key: str) -> str:
    """The text under ``key``; a list is joined by line ends; empty if absent or not text."""
    value = row.get(key)
    if (lines := sequence(value)) is not None:
        value = "\n".join(map(str, lines))
    return value if isinstance(value, str) else ""


def _json(text: str) -> Any:
    value = json.loads(text)
    return json.loads(value) if isinstance(value, str) else value  # some files encode twice


def _decompressed(text: str) -> str:
    packed = base64.b64decode(text, validate=True)
    reader = zlib.decompressobj()
    data = reader.decompress(packed, LONGEST_UNPACKED)
    if reader.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {LONGEST_UNPACKED} bytes")
    content = _TextUnpickler(io.BytesIO(data)).load() if data[:1] == b"\x80" else data.decode()
    if not isinstance(content, str):
        raise ValueError(f"it holds a pickled {type(content).__name__}, not a text")
    return content


class _TextUnpickler(pickle.Unpickler):
    """Reads pickled texts; refuses pickles that name a class or function, which could run anything."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a pickle loads {module}.{name}")

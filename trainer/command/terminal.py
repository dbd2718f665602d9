"""What is printed on a terminal, wrapped between words at its width; what is piped stays as it was written."""

import re
import sys
import textwrap
from shutil import get_terminal_size
from typing import Any

_COPIED = re.compile(r'\s*([|{}\[\]"]|(evenkeel|python|accelerate) )')
"""How lines begin that are copied whole: tables in Markdown, JSON and commands."""


def fit_terminal() -> None:
    """From now on wrap what is printed, where it is printed on a terminal."""
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)).isatty():
            setattr(sys, name, _Fitted(stream))


class _Fitted:
    def __init__(self, stream: Any) -> None:
        self._stream, self._begins = stream, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        is_drawn = not self._begins or re.search(r"[\r\x1b]", text)
        self._stream.write(text if is_drawn else fitted(text, get_terminal_size().columns))
        self._begins = text.endswith("\n") or (self._begins and not text)
        return len(text)


def fitted(text: str, width: int) -> str:
    """``text`` in lines of ``width``; commands in backticks and lines that are copied whole stay in one piece."""
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width or _COPIED.match(line):
        return line
    held = re.sub(r"`[^`]*`", lambda quoted: quoted[0].replace(" ", "\0"), line)
    columns = re.match(r" *(\S+ {2,})*", line)
    hang = " " * (columns.end() if columns and 0 < columns.end() <= width // 2 else 2)
    lines = textwrap.wrap(held, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")

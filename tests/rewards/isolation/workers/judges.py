"""Judges that the worker tests run in real processes."""

import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import gmpy2


def judge(item: list[Any]) -> Any:
    """``[what, argument]`` → what the tests expect or a way not to return."""
    what, argument = item
    return {
        "double": lambda: argument * 2,
        "text": lambda: argument,
        "pid": os.getpid,
        "print": lambda: os.write(1, b"a line that is no JSON\n") and argument,
        "read": lambda: sys.stdin.read(),
        "raise": lambda: _raise(argument),
        "not json": lambda: {argument},
        "spin": _spin,
        "factorial": lambda: len(str(math.factorial(argument))),
        "gmp": lambda: int(gmpy2.bit_length(gmpy2.fac(argument))),
        "sleep": lambda: time.sleep(argument),
        "memory": lambda: len(bytes(argument)),
        "signal": lambda: os.kill(os.getpid(), argument),
        "environment": lambda: sorted(os.environ),
        "die": lambda: _die(Path(argument), 1 << 30),
        "die twice": lambda: _die(Path(argument), 2),
        "wait": lambda: _wait(Path(argument)),
    }[what]()


def _raise(message: str) -> None:
    raise LookupError(message)


def _spin() -> None:
    while True:
        pass


def _wait(folder: Path) -> None:
    """Say ``here`` by a file and return when there is one called ``go``."""
    (folder / "here").touch()
    while not (folder / "go").exists():
        time.sleep(0.02)


def _die(tries: Path, times: int) -> None:
    """Leave a byte for this try; by SIGKILL so many times, as if memory had run out, and then no more."""
    with tries.open("ab") as file:
        file.write(b".")
    if tries.stat().st_size <= times:
        os.kill(os.getpid(), signal.SIGKILL)

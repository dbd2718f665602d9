"""Judges that the worker tests run in real processes."""

import json
import math
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.waiting import wait_until


def judge(item: list[Any]) -> Any:
    """``[what, argument]`` → what the tests expect or a way not to return."""
    what, argument = item
    return {
        "double": lambda: argument * 2,
        "text": lambda: argument,
        "pid": os.getpid,
        "raise": lambda: _raise(argument),
        "not json": lambda: {argument},
        "spin": _spin,
        "factorial": lambda: len(str(math.factorial(argument))),
        "memory": lambda: len(bytes(argument)),
        "signal": lambda: os.kill(os.getpid(), argument),
        "environment": lambda: sorted(os.environ),
        "wait": lambda: _wait(Path(argument)),
        "parts": lambda: _parts(argument),
        "flood": _flood,
        "answer twice": lambda: _answer_after(lambda: None),
        "answer later": lambda: threading.Thread(
            target=_answer_after, args=[lambda: wait_until(Path(argument).exists)]
        ).start(),
    }[what]()


def _raise(message: str) -> None:
    raise LookupError(message)


def _spin() -> None:
    while True:
        pass


def _wait(folder: Path) -> None:
    """Say ``here`` by a file and return when there is one called ``go``."""
    (folder / "here").touch()
    wait_until((folder / "go").exists)


def _parts(parts: list[Any]) -> Iterator[Any]:
    """A set, which JSON cannot write, in the place of ``odd``."""
    for part in parts:
        yield {part} if part == "odd" else part
        time.sleep(0.1)


def _channel() -> int:
    """The descriptor of this process's channel to the pool, as code that has taken the process over finds it."""
    return next(number for number in range(3, 100) if _is_socket(number))


def _is_socket(number: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def _flood() -> None:
    while True:
        os.write(_channel(), bytes(1 << 20))


def _answer_after(wait: Callable[[], object]) -> None:
    """Write a result of this item's own after ``wait``, with the item's token where it is found."""
    token = next((found for frame in sys._current_frames().values() if (found := _token_in(frame))), None)
    wait()
    message = {"token": token, "status": "done", "value": "forged", "detail": ""}
    os.write(_channel(), json.dumps(message).encode() + b"\n")


def _token_in(frame: Any) -> str | None:
    while frame is not None:
        if isinstance(token := frame.f_locals.get("token"), str):
            return token
        frame = frame.f_back
    return None

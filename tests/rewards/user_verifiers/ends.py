"""A verifier whose process ends at a long text, in as many ways as there are; with it what the trial should say."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from evenkeel.rewards.user_verifiers import traits


@traits(timeout_s=30.0)
def process(completion: str, reference: Any, *, act: str = "") -> float:
    """Does at a long text what ``act`` says, in a process of its own."""
    if len(completion) > 4000:
        ENDS[act][0]()
    return float(completion.split()[-1:] == [str(reference)])


def _recurse(depth: int) -> int:
    return _recurse(depth + 1) + 1


def _out_of_memory() -> int:
    return sum(len(part) for part in [bytearray(1 << 30) for _ in range(64)])


def _grow_slowly() -> list[str]:
    text = ["x" * 1000]
    while True:
        text += [*text]


ENDS: dict[str, tuple[Callable[[], Any], str]] = {
    "a null pointer": (lambda: ctypes.string_at(0), "SIGSEGV.*ends.py"),
    "an abort": (os.abort, "SIGABRT.*ends.py"),
    "a kill": (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL.*memory"),
    "a termination": (lambda: os.kill(os.getpid(), signal.SIGTERM), "SIGTERM"),
    "a bus error": (lambda: os.kill(os.getpid(), signal.SIGBUS), "SIGBUS"),
    "leaving with 0": (lambda: os._exit(0), "exit code 0.*os._exit"),
    "leaving with 7": (lambda: os._exit(7), "exit code 7.*os._exit"),
    "sys.exit": (lambda: sys.exit(3), r"sys.exit\(3\)"),
    "too much memory at once": (_out_of_memory, "memory_mb"),
    "too much memory, slowly": (_grow_slowly, "memory_mb"),
    "too deep a recursion": (lambda: _recurse(0), "RecursionError"),
    "an exception": (lambda: {}["x"], "KeyError"),
}

"""Where the processes of verifiers are: what is asked when a run makes no progress."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

ANSWER_SECONDS = 1.0
SOURCES: list[Callable[[], Iterator[str]]] = []
"""What yields the stacks of one kind of process; each kind adds its own."""


def answered_stack(process: int | None, answers: IO[Any]) -> str:
    """The stacks that ``process`` writes on SIGUSR1 into the file behind ``answers``; it must have registered for it.

    They come from C, with or without the interpreter's lock. A process that is stopped or gone gives none, in words.
    """
    if process is None:
        return "not started"
    before = os.fstat(answers.fileno()).st_size
    try:
        os.kill(process, signal.SIGUSR1)
    except ProcessLookupError:
        return f"process {process} has ended"
    size, deadline = before, time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.05)
        grown = os.fstat(answers.fileno()).st_size
        if grown == size > before:
            break
        size = grown
    text = os.pread(answers.fileno(), size - before, before).decode(errors="replace").strip()
    return f"process {process}:\n{text or f'no answer within {ANSWER_SECONDS:g} s'}"


def verifier_stacks() -> str:
    """The stacks of this process's busy verifier workers and of the processes of a user's verifiers, a block each."""
    blocks: list[str] = []
    for source in SOURCES:
        with contextlib.suppress(ValueError, OSError):  # a process that ends while it is asked
            blocks += source()
    return "\n\n".join(blocks)

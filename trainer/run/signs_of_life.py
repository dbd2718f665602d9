"""A line every half minute where there is no terminal, so that a log shows what a run is doing."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SignsOfLife:
    """Prints what is under way whenever nothing was printed for ``seconds``.

    A thread of its own: what it speaks of, a model that is loaded or a batch that is generated, is one long call. It is
    silent where a bar moves on a terminal, and on every rank but the first.

    Attributes:
        has_stepped: whether an optimizer step was made, so that what a user wrote could be used.
    """

    def __init__(self, seconds: float = 30.0) -> None:
        self.seconds = seconds
        self.under_way: Callable[[], str] = str
        self.has_stepped = False
        self.since = self.last_line = time.monotonic()
        self._over = threading.Event()

    def begins(self, under_way: Callable[[], str]) -> None:
        """From now on this is under way; what it is, is asked each time."""
        self.under_way, self.since = under_way, time.monotonic()

    def said(self) -> None:
        """Another line was printed just now."""
        self.last_line = time.monotonic()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Speak until the block ends."""
        self.has_stepped = False
        if sys.stderr.isatty() or int(os.environ.get("RANK", "0")):
            yield
            return
        self._over = threading.Event()
        self.said()
        threading.Thread(target=self._speak, args=(self._over,), name="signs-of-life", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()

    def _speak(self, over: threading.Event) -> None:
        while not over.wait(max(0.01, self.last_line + self.seconds - time.monotonic())):
            now = time.monotonic()
            if now - self.last_line >= self.seconds:
                if what := self.under_way():
                    print(f"{what}, for {now - self.since:.0f} s", flush=True)
                self.said()


SIGNS = SignsOfLife()
"""Of this process, which has one standard output."""

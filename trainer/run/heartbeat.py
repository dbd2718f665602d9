"""A line every half minute where there is no terminal, so that a log shows what a run is doing."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 30.0


class Heartbeat:
    """Prints the stage of the run whenever nothing was printed for `SECONDS`.

    From a thread: a stage, such as loading a model, may be one long call. Silent where a bar moves on a terminal, and
    on every rank but the first.

    Attributes:
        stage: returns what the run is doing.
        has_stepped: an optimizer step was made: the run file's settings work.
    """

    def __init__(self) -> None:
        self.stage: Callable[[], str] = str
        self.has_stepped = False
        self.since = self.last_line = time.monotonic()

    def enter(self, stage: str | Callable[[], str]) -> None:
        """Begin another ``stage``."""
        self.stage, self.since = (lambda: stage) if isinstance(stage, str) else stage, time.monotonic()

    def printed(self) -> None:
        """Record that another line was just printed."""
        self.last_line = time.monotonic()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Print until the block ends."""
        self.has_stepped = False
        self.printed()
        over = threading.Event()
        if not (sys.stderr.isatty() or os.environ.get("RANK", "0") != "0"):
            threading.Thread(target=self._beat, args=(over,), name="heartbeat", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(max(0.01, self.last_line + SECONDS - time.monotonic())):
            now = time.monotonic()
            if now - self.last_line >= SECONDS:
                if stage := self.stage():
                    print(f"{stage}, for {now - self.since:.0f} s", flush=True)
                self.printed()


HEARTBEAT = Heartbeat()
"""The heartbeat of this process, which has one standard output."""

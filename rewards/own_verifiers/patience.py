"""What a batch of a user's verifier waits for is said while it waits: other ranks wait for this one, without a line."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 60.0
SHOWN = 200
"""Characters of a completion and of its reference in the line."""


class Waiting:
    """One batch under judgement.

    Args:
        verifier: its name.
        rows: completion and reference of each.
        timeout_s: when the rows that have no verdict are given up.

    Attributes:
        judged: returns how many rows have their verdict. Rows are judged in order, so the next one is in hand.
    """

    def __init__(self, verifier: str, rows: Sequence[tuple[str, Any]], timeout_s: float) -> None:
        self.verifier = verifier
        self.rows = rows
        self.timeout_s = timeout_s
        self.said = False
        self.judged: Callable[[], int] = lambda: 0

    @contextmanager
    def said_after(self, seconds: float) -> Iterator[None]:
        """Say where the batch is after ``seconds``, or when its time is over where that is sooner."""
        started = time.monotonic()
        timer = threading.Timer(seconds, self._say, [seconds])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        if not self.said and time.monotonic() - started >= self.timeout_s:
            self._say(self.timeout_s)

    def _say(self, seconds: float) -> None:
        row = self.judged()
        if row >= len(self.rows):
            return
        self.said = True
        completion, reference = self.rows[row]
        logger.warning(
            "[rank %s] verifier %s has judged one batch for %g s and is at row %d of %d: completion %.*r, reference "
            "%.*r. All ranks wait for it; what has no verdict after its timeout_s = %g is unjudged. Shorten it with "
            "rewards.own_verifiers.traits(timeout_s=…).",
            os.environ.get("RANK", "0"),
            self.verifier,
            seconds,
            row,
            len(self.rows),
            SHOWN,
            completion,
            SHOWN,
            reference,
            self.timeout_s,
        )

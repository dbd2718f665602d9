"""SIGTERM before training begins."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from trainer.run.lost_ranks import lost_sibling
from trainer.run.processes import FAILED, STOPPED_WITHOUT_CHECKPOINT, say

SECONDS_FOR_RANK_0 = 1.0
"""Before another rank ends: rank 0, which was told to stop at the same time, must not take it for one that was lost."""


@contextmanager
def stoppable_while_loading() -> Iterator[None]:
    """Until training takes SIGTERM over: end with a line and status 143, and without a checkpoint.

    At once, not by an exception: a library that is being imported or a process group that is being made would turn it
    into one of its own.
    """
    before = signal.signal(signal.SIGTERM, _stop_loading)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop_loading(number: int, frame: FrameType | None) -> None:
    if lost_sibling():
        os._exit(FAILED)
    if int(os.environ.get("RANK", "0")):
        time.sleep(SECONDS_FOR_RANK_0)
    say("Stopped before training began: there is no new checkpoint. To start or go on: --resume auto.", of_all=True)
    os._exit(STOPPED_WITHOUT_CHECKPOINT)

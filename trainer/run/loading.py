"""SIGTERM before training begins, and behind its end."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from trainer.run.files import SUMMARY
from trainer.run.lost_ranks import lost_sibling
from trainer.run.processes import FAILED, STOPPED, STOPPED_WITHOUT_CHECKPOINT, say

SECONDS_FOR_RANK_0 = 1.0
"""Before another rank ends: rank 0, which was told to stop at the same time, must not take it for one that was lost."""


@contextmanager
def stoppable_while_loading() -> Iterator[None]:
    """Until training takes SIGTERM over: end with a line and status 143, and without a checkpoint.

    At once, not by an exception: a library that is being imported or a process group that is being made would turn it
    into one of its own.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, _stop_loading)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stoppable_behind_training(checkpoint: Path) -> None:
    """From the last step to the end of the process: SIGTERM and Ctrl-C end it with a line that says what is there.

    Args:
        checkpoint: that of the last step, if it was saved.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        saved = checkpoint.is_dir()
        what = f"{checkpoint} is there" if saved else "there is no checkpoint of its last step"
        then = "" if (checkpoint.parent / SUMMARY).exists() else ", before its summary was written"
        say(f"Stopped behind training{then}: {what}. To go on: --resume auto.", of_all=True)
        os._exit(STOPPED if saved else STOPPED_WITHOUT_CHECKPOINT)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def _stop_loading(number: int, frame: FrameType | None) -> None:
    if lost_sibling():
        os._exit(FAILED)
    if int(os.environ.get("RANK", "0")):
        time.sleep(SECONDS_FOR_RANK_0)
    say("Stopped before training began: there is no new checkpoint. To start or go on: --resume auto.", of_all=True)
    os._exit(STOPPED_WITHOUT_CHECKPOINT)

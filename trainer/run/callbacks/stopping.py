"""How a run stops when it is asked to."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainer.run.processes import STOPPED_WITHOUT_CHECKPOINT, launcher

SAME_REQUEST = 2.0
"""Seconds within which a second SIGINT is the first one again: a launcher passes on what the ranks have had already."""


class StopAtBlockEdge(TrainerCallback):
    """Ctrl-C or SIGTERM: train the rollout batch in hand to its end, save a checkpoint, stop. Ctrl-C twice: stop now.

    Only between rollout batches is a checkpoint exact. All ranks stop at the same step, whichever of them was asked.
    Under a launcher a second Ctrl-C never arrives, and is not promised.

    Args:
        steps_per_block: optimizer steps for which one rollout batch is trained.
        any_rank: whether the flag is up on any rank.
        grace_seconds: how long after SIGTERM the process waits for the batch in hand; then it ends without a new
            checkpoint, with status 143. ``None`` = for as long as it takes.
    """

    def __init__(
        self, steps_per_block: int, any_rank: Callable[[bool], bool], grace_seconds: float | None = None
    ) -> None:
        self.steps_per_block = steps_per_block
        self.any_rank = any_rank
        self.grace_seconds = grace_seconds
        self.requested = False
        self.stopped = False
        self.first_request = 0.0
        self.last_saved: int | None = None
        self.speaks = False

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.speaks = state.is_world_process_zero
        self.last_saved = state.global_step or None
        self.previous = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step >= state.max_steps or state.global_step % self.steps_per_block:
            return
        if self.any_rank(self.requested):
            self.stopped = control.should_save = control.should_training_stop = True

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.last_saved = state.global_step

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.requested:
            if number == signal.SIGINT and now - self.first_request > SAME_REQUEST:
                raise KeyboardInterrupt
            return
        self.requested, self.first_request = True, now
        grace = self.grace_seconds if number == signal.SIGTERM else None
        limit = (
            "" if grace is None else f", if it ends within {grace:g} s; else {self._last_checkpoint()} is what counts"
        )
        twice = " Ctrl-C again stops at once, without one." if number == signal.SIGINT and launcher() is None else ""
        self._say(f"Stopping after this rollout batch, with a checkpoint{limit}.{twice}")
        if grace is not None:
            timer = threading.Timer(grace, self._give_up)
            timer.daemon = True
            timer.start()

    def _give_up(self) -> None:
        if self.stopped:  # the batch has ended, and its checkpoint is being written
            return
        self._say(
            f"The rollout batch or evaluation in hand did not end within {self.grace_seconds:g} s: "
            f"{self._last_checkpoint()} is what counts. To go on: --resume auto."
        )
        os._exit(STOPPED_WITHOUT_CHECKPOINT)

    def _last_checkpoint(self) -> str:
        return "the run's beginning" if self.last_saved is None else f"checkpoint-{self.last_saved}"

    def _say(self, text: str) -> None:
        if self.speaks:
            tqdm.write(text)
            sys.stdout.flush()

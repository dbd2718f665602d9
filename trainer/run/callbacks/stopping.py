"""How a run stops when it is asked to."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainer.run.lost_ranks import lost_sibling
from trainer.run.processes import FAILED, STOPPED_WITHOUT_CHECKPOINT, launcher

SAME_REQUEST = 2.0
"""Seconds within which a second SIGINT is the first one again: a launcher passes on what the ranks have had already."""


A_MOMENT = 0.01
"""Seconds: no rollout batch and no evaluation takes less."""


class InHand:
    """What a run is busy with, and how long the last of its kind took."""

    def __init__(self) -> None:
        self.what = "rollout batch"
        self.started = time.monotonic()
        self.took: dict[str, float] = {}

    def begins(self, what: str) -> None:
        """The thing in hand has ended, and ``what`` begins."""
        now = time.monotonic()
        if now - self.started > A_MOMENT:  # else it did not run: an evaluation was begun in its place
            self.took[self.what] = now - self.started
        self.what, self.started = what, now

    def seconds_left(self) -> float | None:
        """Until it ends, if it takes as long as the last one; ``None`` of the first."""
        took = self.took.get(self.what)
        return None if took is None else max(0.0, took - (time.monotonic() - self.started))


class StopAtBlockEdge(TrainerCallback):
    """Ctrl-C or SIGTERM: train the rollout batch in hand to its end, save a checkpoint, stop. Ctrl-C twice: stop now.

    Only between rollout batches is a checkpoint exact: behind one, or behind the evaluation that follows it. All ranks
    stop at the same step, whichever of them was asked. Under a launcher a second Ctrl-C never arrives, and is not
    promised. Whether the grace time will do is foretold from how long the one before took.

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
        self.has_stepped = False
        self.in_hand = InHand()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.speaks = state.is_world_process_zero
        self.last_saved = state.global_step or None
        self.in_hand.begins("rollout batch")
        self.previous = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.has_stepped = True

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step % self.steps_per_block == 0:
            self.in_hand.begins("evaluation" if control.should_evaluate else "rollout batch")
            self._stop_if_asked(state, control)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.in_hand.begins("rollout batch")
        if state.global_step and state.global_step % self.steps_per_block == 0:
            self._stop_if_asked(state, control)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if Path(args.output_dir, f"checkpoint-{state.global_step}").is_dir():  # else it did not fit on its disk
            self.last_saved = state.global_step
        self.in_hand.begins("rollout batch")

    def _stop_if_asked(self, state: TrainerState, control: TrainerControl) -> None:
        if state.global_step < state.max_steps and self.any_rank(self.requested):
            self.stopped = control.should_save = control.should_training_stop = True

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number == signal.SIGTERM and lost_sibling():
            os._exit(FAILED)  # no batch ends without the rank that is gone; the launcher says which
        if self.requested:
            if number == signal.SIGINT and now - self.first_request > SAME_REQUEST:
                raise KeyboardInterrupt
            return
        self.requested, self.first_request = True, now
        grace = self.grace_seconds if number == signal.SIGTERM else None
        limit = "" if grace is None else self._within(grace)
        twice = " Ctrl-C again stops at once, without one." if number == signal.SIGINT and launcher() is None else ""
        self._say(f"Stopping after this {self.in_hand.what}, with a checkpoint{limit}.{twice}")
        if grace is not None:
            timer = threading.Timer(grace, self._give_up)
            timer.daemon = True
            timer.start()

    def _within(self, grace: float) -> str:
        """What the grace time will do, from what the last rollout batch or evaluation took."""
        left, counts = self.in_hand.seconds_left(), self._last_checkpoint()
        if left is None or left <= grace:
            known = "" if left is None else f" (it needs about {left:.3g} s more)"
            return f", if it ends within {grace:g} s{known}; else {counts} is what counts"
        return (
            f", if it ended within stopping.grace_seconds = {grace:g} s, but as the one before it needs about "
            f"{left:.3g} s more: {counts} is what will count, and the steps since are trained again"
        )

    def _give_up(self) -> None:
        if self.stopped and self.in_hand.what != "evaluation":  # its checkpoint is being written
            return
        self._say(
            f"The {self.in_hand.what} in hand did not end within {self.grace_seconds:g} s: "
            f"{self._last_checkpoint()} is what counts. To go on: --resume auto."
        )
        os._exit(STOPPED_WITHOUT_CHECKPOINT)

    def _last_checkpoint(self) -> str:
        return "the run's beginning" if self.last_saved is None else f"checkpoint-{self.last_saved}"

    def _say(self, text: str) -> None:
        if self.speaks:
            tqdm.write(text)
            sys.stdout.flush()

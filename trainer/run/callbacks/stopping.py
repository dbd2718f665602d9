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

from evenkeel.trainer.run.processes import FAILED, STOPPED_WITHOUT_CHECKPOINT, launcher, peer_died
from evenkeel.trainer.run.record.checkpoints import checkpoints_of
from evenkeel.trainer.run.record.files import MANIFEST

SAME_REQUEST = 2.0
"""Seconds within which a second SIGINT is the first one again: a launcher passes on what the ranks have had already."""


class Work:
    """What a run is doing: a rollout batch, an evaluation or a checkpoint; and how long the last of each took."""

    def __init__(self) -> None:
        self.what = "rollout batch"
        self.started = time.monotonic()
        self.took: dict[str, float] = {}

    def begins(self, what: str) -> None:
        """``what`` begins now."""
        self.what, self.started = what, time.monotonic()

    def ended(self) -> None:
        """What began last has ended: note how long it took."""
        self.took[self.what] = time.monotonic() - self.started

    def seconds_left(self) -> float | None:
        """Seconds until it ends if it takes as long as the last of its kind; ``None`` for the first of a kind."""
        took = self.took.get(self.what)
        return None if took is None else max(0.0, took - (time.monotonic() - self.started))


class StopAtRolloutBoundary(TrainerCallback):
    """Ctrl-C or SIGTERM: finish the current rollout batch, save a checkpoint, stop. Ctrl-C twice: stop now.

    A checkpoint is exact only between rollout batches: after one, or after the evaluation or the checkpoint that
    follows it. All ranks stop at the same step, whichever of them was asked. Under a launcher a second Ctrl-C never
    arrives, and is not promised. Whether the grace time is enough is estimated from how long the last one took.

    The checkpoint that a message names is read from the disk: the newest one with a manifest, which is written last.

    Args:
        steps_per_block: optimizer steps for which one rollout batch is trained.
        any_rank: whether the flag is up on any rank.
        grace_seconds: how long after SIGTERM the process may work on; then it ends without a new
            checkpoint, with status 143. A checkpoint that is being written then has as long again, once.
            ``None`` = for as long as it takes.
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
        self.run = Path()
        self.resumed_from: int | None = None
        self.speaks = False
        self.has_stepped = False
        self.timer: threading.Timer | None = None
        self.work = Work()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.speaks = state.is_world_process_zero
        self.run, self.resumed_from = Path(args.output_dir), state.global_step or None
        self.work.begins("rollout batch")
        self.previous = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.has_stepped = True
        if state.global_step % self.steps_per_block == 0:
            self.work.begins("rollout batch")

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step % self.steps_per_block == 0:
            self.work.ended()
            self._stop_if_asked(state, control)
            self.work.begins("evaluation" if control.should_evaluate else _saving_or_training(control))

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.work.what == "evaluation":  # not so before the first step
            self.work.ended()
        if state.global_step and state.global_step % self.steps_per_block == 0:
            self._stop_if_asked(state, control)
        self.work.begins(_saving_or_training(control))

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.work.what == "checkpoint":  # another callback may have asked for it after this one
            self.work.ended()
        if not self.stopped and state.global_step % self.steps_per_block == 0 and self._is_asked(state):
            self.stopped = control.should_training_stop = True

    def _stop_if_asked(self, state: TrainerState, control: TrainerControl) -> None:
        if self._is_asked(state):
            self.stopped = control.should_save = control.should_training_stop = True

    def _is_asked(self, state: TrainerState) -> bool:
        """Whether any rank was asked and there are steps left; a collective."""
        return state.global_step < state.max_steps and self.any_rank(self.requested)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.timer is not None:
            self.timer.cancel()
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number == signal.SIGTERM and peer_died():
            os._exit(FAILED)  # no batch ends without the rank that is gone; the launcher says which
        if self.requested:
            if number == signal.SIGINT and now - self.first_request > SAME_REQUEST:
                raise KeyboardInterrupt
            return
        self.requested, self.first_request = True, now
        grace = self.grace_seconds if number == signal.SIGTERM else None
        limit = "" if grace is None else self._within(grace)
        twice = " Ctrl-C again stops at once, without one." if number == signal.SIGINT and launcher() is None else ""
        what = self.work.what + ("" if self.work.what == "checkpoint" else ", with a checkpoint")
        self._say(f"Stopping after this {what}{limit}.{twice}")
        if grace is not None:
            self._give_up_after(grace, grace)

    def _within(self, grace: float) -> str:
        """What the grace time will do, from how long the last work of this kind took."""
        left, counts = self.work.seconds_left(), self._last_checkpoint()
        if left is None or left <= grace:
            known = "" if left is None else f" (it needs about {left:.3g} s more)"
            return f", if it ends within {grace:g} s{known}; else {counts} is what counts"
        return (
            f", if it ended within stopping.grace_seconds = {grace:g} s, but as the one before it needs about "
            f"{left:.3g} s more: {counts} is what will count, and the steps since are trained again"
        )

    def _give_up_after(self, seconds: float, waited: float) -> None:
        """Call `_give_up` in ``seconds``, when the process will have worked on for ``waited`` seconds in all."""
        self.timer = threading.Timer(seconds, self._give_up, [seconds, waited])
        self.timer.daemon = True
        self.timer.start()

    def _give_up(self, grace: float, waited: float) -> None:
        if self.work.what == "checkpoint" and waited == grace:  # the run stops after it; a save that hangs has no end
            self._say(
                f"After {grace:g} s the checkpoint is still being written: waiting {grace:g} s more for it. If it does "
                f"not end by then, {self._last_checkpoint()} is what counts."
            )
            self._give_up_after(grace, 2 * grace)
            return
        self._say(
            f"The {self.work.what} did not end within {waited:g} s: {self._last_checkpoint()} is what "
            "counts. To resume: --resume auto."
        )
        os._exit(STOPPED_WITHOUT_CHECKPOINT)

    def _last_checkpoint(self) -> str:
        """The name of the newest complete checkpoint."""
        whole = [path.name for path in checkpoints_of(self.run) if (path / MANIFEST).is_file()]
        if not whole and self.resumed_from is not None:  # written by a version without manifests
            return f"checkpoint-{self.resumed_from}"
        return whole[0] if whole else "the run's beginning"

    def _say(self, text: str) -> None:
        if self.speaks:
            tqdm.write(text)
            sys.stdout.flush()


def _saving_or_training(control: TrainerControl) -> str:
    """What follows an optimizer step or an evaluation."""
    return "checkpoint" if control.should_save else "rollout batch"

"""Stopping a run on request."""

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback

from evenkeel.trainer.run.processes import FAILED, launcher, peer_died

SAME_REQUEST = 2.0
"""Seconds within which a second SIGINT is the first one again: a launcher passes on what the ranks have had already."""


class StopAtRolloutBoundary(TrainerCallback):
    """Ctrl-C or SIGTERM: finish the current rollout batch, save a checkpoint, stop. Ctrl-C twice: stop now.

    A checkpoint is exact only between rollout batches: after one, or after the evaluation or the checkpoint that
    follows it. All ranks stop at the same step, whichever of them was asked. Under a launcher a second Ctrl-C never
    arrives. After SIGKILL the newest checkpoint with a manifest counts: the manifest is written last.

    Args:
        steps_per_block: optimizer steps for which one rollout batch is trained.
        any_rank: returns whether its argument is true on any rank; a collective.
    """

    def __init__(self, steps_per_block: int, any_rank: Callable[[bool], bool]) -> None:
        self.steps_per_block = steps_per_block
        self.any_rank = any_rank
        self.requested = False
        self.stopped = False
        self.first_request = 0.0
        self.speaks = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.speaks = state.is_world_process_zero
        self.previous = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._is_asked(state):
            self.stopped = control.should_save = control.should_training_stop = True

    on_evaluate = on_step_end

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self.stopped and self._is_asked(state):
            self.stopped = control.should_training_stop = True

    def _is_asked(self, state: Any) -> bool:
        """Whether the run may stop here, and any rank was asked; a collective."""
        is_boundary = 0 < state.global_step < state.max_steps and state.global_step % self.steps_per_block == 0
        return is_boundary and self.any_rank(self.requested)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if number == signal.SIGTERM and peer_died():
            os._exit(FAILED)  # no batch ends without a rank that is gone
        if self.requested:
            if number == signal.SIGINT and now - self.first_request > SAME_REQUEST:
                raise KeyboardInterrupt
            return
        self.requested, self.first_request = True, now
        twice = " Ctrl-C again stops at once, without one." if number == signal.SIGINT and launcher() is None else ""
        if self.speaks:
            tqdm.write(f"Stopping after this rollout batch, evaluation or checkpoint, with a checkpoint.{twice}")
            sys.stdout.flush()

"""How a run stops when it is asked to."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class StopAtBlockEdge(TrainerCallback):
    """Ctrl-C or SIGTERM: train the rollout batch in hand to its end, save a checkpoint, stop. Ctrl-C twice: stop now.

    Only between rollout batches is a checkpoint exact. All ranks stop at the same step, whichever of them was asked.

    Args:
        steps_per_block: optimizer steps for which one rollout batch is trained.
        any_rank: whether the flag is up on any rank.
    """

    def __init__(self, steps_per_block: int, any_rank: Callable[[bool], bool]) -> None:
        self.steps_per_block = steps_per_block
        self.any_rank = any_rank
        self.requested = False
        self.stopped = False

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.previous = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.global_step >= state.max_steps or state.global_step % self.steps_per_block:
            return
        if self.any_rank(self.requested):
            self.stopped = control.should_save = control.should_training_stop = True

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _request(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
        tqdm.write("Stopping after this rollout batch, with a checkpoint. Ctrl-C again stops at once, without one.")

"""Rollout batches that train nothing: after many of them the run ends."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

END_AFTER = 20
"""Rollout batches in a row. At a pass rate of 5 % four groups of eight are all dead with probability .19: 20 times in a
row is 4e-15.
"""
IDLE = "batches without gradient"
_READ = ("groups/frac_unjudged", "groups/frac_all_correct", "advantage/mean_abs", "completions/clipped_ratio")
_CELL = "EVENKEEL_CELL"


class IdleBatches(TrainerCallback):
    """Ends a run after `END_AFTER` rollout batches in a row without a gradient, over the parts of a resumed run.

    A batch trains nothing where its advantages or the gradients of all its optimizer steps are exactly 0. Where all its
    answers are right that is as it should be, and never ends the run. A cell of a sweep is not ended either: seeds that
    are missing would bias the comparison. What the log shows before is the doctor's to report.

    Args:
        metrics: TRL's of the training, name → values since the last log line.
        counts: of the run, saved in its checkpoints.
        newest_norm: the gradient norm of the newest optimizer step.
        steps_per_block: optimizer steps for which one rollout batch is trained.
    """

    def __init__(
        self,
        metrics: Mapping[str, Mapping[str, Sequence[float]]],
        counts: Counter[str],
        newest_norm: Callable[[], float],
        steps_per_block: int,
    ) -> None:
        self.metrics, self.counts, self.newest_norm = metrics, counts, newest_norm
        self.steps_per_block = steps_per_block
        self.ends = not os.environ.get(_CELL)
        self.ended = False
        self._batch: dict[str, float] = {}
        self._norms: list[float] = []

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        place = (state.global_step - 1) % self.steps_per_block
        if place == 0:  # later steps may find the batch's metrics logged already
            logged = self.metrics["train"]
            self._batch = {name: float(logged[name][-1]) for name in _READ if logged.get(name)}
            self._norms = []
        self._norms.append(self.newest_norm())
        if place < self.steps_per_block - 1 or len(self._norms) < self.steps_per_block:
            return
        if not is_idle(self._batch, self._norms):
            self.counts.pop(IDLE, None)
        elif self._batch.get("groups/frac_all_correct") != 1:
            self.counts[IDLE] += 1
            # A run that is resumed after its end goes on for as many more.
            over = self.ends and self.counts[IDLE] % END_AFTER == 0
            if over and state.global_step < state.max_steps:
                self.ended = control.should_save = control.should_training_stop = True

    def message(self) -> str:
        """The message after the end of a run that this has ended."""
        if self._batch.get("groups/frac_unjudged") == 1:
            why = "no completion could be scored: the references or the verifier failed."
        elif self._batch.get("completions/clipped_ratio") == 1:
            why = "every completion was cut off at trl.max_completion_length."
        elif self._batch.get("advantage/mean_abs", 0.0) > 0:
            why = "the advantages are not 0, but what they multiply is: masks, token weights or coefficients."
        else:
            why = "in every group all rewards are equal. Look at the answers with evenkeel rollouts."
        return (
            f"The run ended: for {self.counts[IDLE]} rollout batches in a row there was no gradient: {why} To continue "
            f"for {END_AFTER} more: --resume auto."
        )


def is_idle(batch: Mapping[str, float], norms: Sequence[float]) -> bool:
    """Whether a rollout batch trained nothing, by its metrics and the gradient norms of its optimizer steps."""
    unscored = batch.get("groups/frac_unjudged") == 1
    return unscored or batch.get("advantage/mean_abs") == 0 or (bool(norms) and all(norm == 0 for norm in norms))

"""Rollout batches that train nothing: reported, and after many of them the run ends."""

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

REPORT_AFTER, END_AFTER = 5, 20
"""Rollout batches in a row. At a pass rate of 5 % four groups of eight are all dead with probability .19: 20 times in a
row is 4e-15.
"""
IDLE, RIGHT, CUT_OFF = "batches without gradient", "batches all right", "batches all cut off"
_SAME = "batches with one value of "
_READ = (
    "rewards/",
    "groups/frac_unjudged",
    "groups/frac_all_correct",
    "advantage/mean_abs",
    "completions/clipped_ratio",
)
_CELL = "EVENKEEL_CELL"


class IdleBatches(TrainerCallback):
    """Reports in one line that nothing is trained, that a verifier scores everything alike, or that no completion ends.

    Each is counted in rollout batches in a row, over the parts of a resumed run, and reported at `REPORT_AFTER`. A
    batch trains nothing where its advantages or the gradients of all its optimizer steps are exactly 0. Where all its
    answers are right that is as it should be: it is reported, and never ends the run. A cell of a sweep is not ended
    either: seeds that are missing would bias the comparison.

    Args:
        metrics: TRL's of the training, name → values since the last log line.
        counts: of the run, saved in its checkpoints.
        newest_norm: the gradient norm of the newest optimizer step.
        steps_per_block: optimizer steps for which one rollout batch is trained.
        say: what prints a line; called on rank 0 alone.
    """

    def __init__(
        self,
        metrics: Mapping[str, Mapping[str, Sequence[float]]],
        counts: Counter[str],
        newest_norm: Callable[[], float],
        steps_per_block: int,
        say: Callable[[str], None],
    ) -> None:
        self.metrics, self.counts, self.newest_norm = metrics, counts, newest_norm
        self.steps_per_block = steps_per_block
        self.ends = not os.environ.get(_CELL)
        self.say = say
        self.ended = False
        self._batch: dict[str, float] = {}
        self._norms: list[float] = []
        self._reason = ""

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        place = (state.global_step - 1) % self.steps_per_block
        if place == 0:  # later steps may find the batch's metrics logged already
            logged = self.metrics["train"].items()
            self._batch = {name: float(values[-1]) for name, values in logged if values and name.startswith(_READ)}
            self._norms = []
        self._norms.append(self.newest_norm())
        if place < self.steps_per_block - 1 or len(self._norms) < self.steps_per_block:
            return
        before = self.counts[IDLE]
        lines = self._lines(args.max_completion_length)
        # A run that is resumed after its end goes on for as many more.
        over = self.ends and self.counts[IDLE] > before and self.counts[IDLE] % END_AFTER == 0
        if over and state.global_step < state.max_steps:
            self.ended = control.should_save = control.should_training_stop = True
        if state.is_world_process_zero:
            for line in lines:
                self.say(f"step {state.global_step}: {line}")

    def _lines(self, longest: int) -> list[str]:
        batch, counts = self._batch, self.counts
        idle, right = is_idle(batch, self._norms), batch.get("groups/frac_all_correct") == 1
        if not (idle and right):  # all right neither goes on with such batches nor ends them
            self._count(IDLE, idle)
        self._count(RIGHT, idle and right)
        self._count(CUT_OFF, batch.get("completions/clipped_ratio") == 1)
        same = one_valued(batch)
        for name in {*same} | {name.removeprefix(_SAME) for name in counts if name.startswith(_SAME)}:
            self._count(_SAME + name, name in same)
        due = {name for name, number in counts.items() if number == REPORT_AFTER}
        cut_off = f"every completion was cut off at trl.max_completion_length = {longest}"
        self._reason = self._why(same, cut_off)
        lines = []
        if RIGHT in due and idle and right:
            lines.append(
                f"All answers of the last {REPORT_AFTER} rollout batches are right: nothing is left to learn from "
                "these prompts. Give harder ones, or end the run."
            )
        if idle and not right and counts[IDLE] == REPORT_AFTER:
            ends = f" After {END_AFTER} the run ends." if self.ends else ""
            lines.append(f"No gradient for {REPORT_AFTER} rollout batches, so nothing is trained: {self._reason}{ends}")
        elif CUT_OFF in due and not idle:
            lines.append(
                f"In the last {REPORT_AFTER} rollout batches {cut_off}: none was ended by the policy. Write a larger "
                "one, or check that the policy writes its end-of-text token."
            )
        alike = [name for name in same if _SAME + name in due and not idle]
        return lines + [
            f"{name.removeprefix('rewards/')} gave {same[name]:g} to every completion of the last {REPORT_AFTER} "
            "rollout batches: it scores all answers alike. Look at them with evenkeel rollouts."
            for name in alike
        ]

    def _count(self, name: str, more: bool) -> None:
        if more:
            self.counts[name] += 1
        else:
            self.counts.pop(name, None)

    def _why(self, same: Mapping[str, float], cut_off: str) -> str:
        batch = self._batch
        if batch.get("groups/frac_unjudged") == 1:
            why = "no completion could be scored: the references or the verifier failed."
        elif batch.get("completions/clipped_ratio") == 1:
            why = f"{cut_off}. Write a larger one, or check that the policy writes its end-of-text token."
        elif same:
            values = ", ".join(f"{name.removeprefix('rewards/')} gave {value:g}" for name, value in same.items())
            why = f"{values} to every completion. Look at the answers with evenkeel rollouts, and try easier prompts."
        elif batch.get("advantage/mean_abs", 0.0) > 0:
            why = "the advantages are not 0, but what they multiply is: masks, token weights or coefficients."
        else:
            why = "in every group all rewards are equal. Write more trl.num_generations, or other prompts."
        return why

    def message(self) -> str:
        """The message after the end of a run that this has ended."""
        return (
            f"The run ended: for {self.counts[IDLE]} rollout batches in a row there was no gradient, so "
            f"nothing was trained: {self._reason} Fix that and start again; to continue for "
            f"{END_AFTER} more: --resume auto."
        )


def is_idle(batch: Mapping[str, float], norms: Sequence[float]) -> bool:
    """Whether a rollout batch trained nothing, by its metrics and the gradient norms of its optimizer steps."""
    nobody = batch.get("groups/frac_unjudged") == 1
    return nobody or batch.get("advantage/mean_abs") == 0 or (bool(norms) and all(norm == 0 for norm in norms))


def one_valued(batch: Mapping[str, float]) -> dict[str, float]:
    """Reward → the value that it gave to all completions, of those that gave one; float noise is not a difference."""
    ends = "/mean"
    rewards = [name.removesuffix(ends) for name in batch if name.startswith("rewards/") and name.endswith(ends)]
    means = {name: batch[f"{name}{ends}"] for name in rewards}
    return {
        name: mean
        for name, mean in means.items()
        if not math.isnan(mean) and batch.get(f"{name}/std", math.nan) <= 1e-6 * max(1.0, abs(mean))
    }

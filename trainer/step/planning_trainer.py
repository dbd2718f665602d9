"""TRL's trainer with micro-batches that are cut anew where that leaves the gradient as it is."""

import math
import warnings
from pathlib import Path
from typing import Any, Literal

import torch

from trainer.algorithms.strategies import Strategies
from trainer.step.compatibility import PreflightError
from trainer.step.gradient_check import GradientComparison, compared_gradients
from trainer.step.head_positions import labelled_positions_only
from trainer.step.microbatches import Batch
from trainer.step.planned_microbatches import PlannedMicrobatches, together
from trainer.step.planning_rules import (
    comparisons_due,
    cuts_passes,
    model_problems,
    plan_problems,
    positions_are_relative,
)
from trainer.step.rollout_batches import forwards_per_rollout
from trainer.step.sampling_trainer import SamplingTrainer
from trainer.step.sharding import parameters_are_sharded

Microbatches = Literal["trl", "planned"]
MISMATCH = "planned_microbatches_mismatch"
COMPARED = "planned_microbatches_compared"
"""In `counts`: whether planning was given up, and how many optimizer steps have been compared."""


class PlanningTrainer(SamplingTrainer):
    """`SamplingTrainer` that trains on planned micro-batches (see `PlannedMicrobatches`).

    Args:
        microbatches: ``trl`` leaves them as TRL cuts them; ``planned`` cuts them anew where that leaves the gradient as
            it is, and elsewhere leaves them too and warns with the reason.
        tokens_per_microbatch: padded tokens of a planned one at most; ``None`` = what the configured one may take.
        verify_steps: optimizer steps, from the first with a gradient on, whose gradient is computed by both cuts first;
            above 0 the steps at a quarter, half and three quarters of the run and the last one too, for a part may
            begin late (where one has no gradient, the next with one). Where the cuts differ by more than rounding,
            this and all later steps are TRL's, also when the run is resumed: with a warning, and with
            ``planned_microbatches_mismatch_<rank>.pt`` in the output directory (both cuts, both gradients).

    Rows whose gradient is zero are left out. They count in ``clip_ratio/…`` and ``cispo_clip_ratio`` (nothing of them
    is clipped), not in ``entropy`` and ``vespo/phi_seq_mean``, which are of the rows that are trained and absent where
    there are none. Means are over the tokens of all micro-batches, ``clip_ratio/low_min`` and ``high_max`` over the
    rows of an optimizer step, where TRL logs the mean over micro-batches of each one's.

    Raises:
        PreflightError: another word for ``microbatches``.
    """

    strategies: Strategies
    planner: PlannedMicrobatches | None = None

    def __init__(
        self,
        *positional: Any,
        microbatches: Microbatches = "trl",
        tokens_per_microbatch: int | None = None,
        verify_steps: int = 1,
        **keywords: Any,
    ) -> None:
        if microbatches not in ("trl", "planned"):
            raise PreflightError(f"microbatches = {microbatches!r} is neither trl nor planned. Write one of them.")
        self._verify_steps = verify_steps
        self._planned: list[Batch] = []
        super().__init__(*positional, **keywords)
        if microbatches == "trl":
            return
        problems = [*plan_problems(self.args, self.strategies), *model_problems(self)]
        if problems:
            reasons = "; ".join(problems)
            self._say(f"Micro-batches stay as TRL cuts them: {reasons}. To silence this write microbatches: trl.")
            return
        self.planner = PlannedMicrobatches(
            self.args,
            self.strategies,
            self.accelerator,
            tokens_per_microbatch=tokens_per_microbatch,
            cuts_passes=cuts_passes(self.args, self.strategies),
            trims_prompts=positions_are_relative(self),
        )

    def _microbatch_to_train(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The planned micro-batch of this forward pass; without a plan ``inputs``, the buffered one."""
        if self.planner is None or not self.model.training:
            return inputs
        size, index = together(self.args), self._step % self.args.steps_per_generation
        if index % size == 0 or not self._planned:
            start = index - index % size
            originals = self._buffered_inputs[start : start + size]
            self._planned = self.planner.cut(originals, self._pass_index)
            steps = comparisons_due(self._verify_steps, self.state.global_step, self.state.max_steps)
            if steps > self.counts[COMPARED] and not self._verified(originals):
                self.planner, self._planned, self.counts[MISMATCH] = None, [], 1
                return inputs
        return self._planned[index % size]

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and self.planner is not None and self.counts[MISMATCH]:
            self.planner = None
            self._say("Micro-batches stay as TRL cuts them: planned ones gave another gradient before the checkpoint.")

    @property
    def _pass_index(self) -> int:
        """Which pass over the rollout batch the current micro-batch belongs to."""
        index: int = (self._step // self.args.steps_per_generation) % self.strategies.schedule.num_passes
        return index

    @property
    def _is_updated(self) -> bool:
        """Whether the policy has been updated since the rollout batch in training was generated."""
        since: int = self._step % forwards_per_rollout(self.args, self.strategies.schedule.num_passes)
        return since >= self.args.gradient_accumulation_steps

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *positional: Any, **keywords: Any
    ) -> Any:
        score = super()._get_per_token_logps_and_entropies
        if self.planner is None:
            return score(model, input_ids, attention_mask, logits_to_keep, *positional, **keywords)
        with labelled_positions_only(self.accelerator.device):
            plain = all(
                value is None for name, value in keywords.items() if name not in ("batch_size", "compute_entropy")
            )
            if torch.is_grad_enabled() or not self.model.training or positional or not plain:
                return score(model, input_ids, attention_mask, logits_to_keep, *positional, **keywords)
            return self._planned_scores(score, model, input_ids, attention_mask, logits_to_keep, **keywords)

    def _planned_scores(
        self, score: Any, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **keywords: Any
    ) -> Any:
        """What ``score`` gives for all rows, from forward passes that are no wider than their rows."""
        assert self.planner is not None
        batch_size = keywords.pop("batch_size", None) or len(input_ids)
        results: list[torch.Tensor | None] = [None, None]
        for rows, first, width in self.planner.scoring_cut(attention_mask, logits_to_keep, batch_size):
            columns = slice(first, input_ids.shape[1] - logits_to_keep + width)
            scored = score(model, input_ids[rows, columns], attention_mask[rows, columns], width, **keywords)
            for index, values in enumerate(scored[:2]):
                if values is not None:
                    if results[index] is None:  # padding is 0, as in TRL's
                        results[index] = values.new_zeros(len(input_ids), logits_to_keep)
                    results[index][rows, :width] = values  # type: ignore[index]
        return *results, None

    def _verified(self, originals: list[Batch]) -> bool:
        """Whether both cuts give the same gradient on every rank; yes, with a warning, where it cannot be computed."""
        reason = None
        if parameters_are_sharded(self):
            reason = "the parameters are sharded over the ranks"
        elif self.args.gradient_checkpointing and (self.args.gradient_checkpointing_kwargs or {}).get("use_reentrant"):
            reason = "gradient checkpointing with use_reentrant allows no gradient beside training's"
        if reason is not None:
            self._say(f"Planned micro-batches are not compared with TRL's: {reason}.")
            self._verify_steps = 0
            return True
        comparison = compared_gradients(self, originals, self._planned)
        if self.any_rank(not math.isfinite(comparison.size)):
            return True  # TRL's own gradient is no number: nothing to compare with
        if not self.any_rank(not comparison.agree):
            self.counts[COMPARED] += int(self.any_rank(comparison.size > 0))
            return True
        self._save_mismatch(originals, comparison)
        return False

    def _save_mismatch(self, originals: list[Batch], comparison: GradientComparison) -> None:
        path = Path(self.args.output_dir) / f"{MISMATCH}_{self.accelerator.process_index}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        found = {"step": self.state.global_step, "pass_index": self._pass_index, "args": self.args.to_dict()}
        cuts = {"trl": originals, "planned": self._planned}
        gradients = dict(zip(cuts, comparison.gradients, strict=True))
        torch.save({**found, "cuts": cuts, "gradients": gradients, "parameters": comparison.parameters}, path)
        self._say(
            f"Planned micro-batches give another gradient than TRL's at step {self.state.global_step}: it differs by "
            f"{comparison.difference:.2g} of its size, where rounding explains {comparison.tolerance:g}. This step and "
            f"all later ones train on TRL's micro-batches. Both cuts and gradients lie in {path.name}, in the output "
            "directory; please report it with this file. To silence it write microbatches: trl."
        )

    def any_rank(self, flag: bool) -> bool:
        """Whether ``flag`` is up on any rank; all ranks must ask."""
        flags = self.accelerator.gather(torch.tensor([flag], device=self.accelerator.device))
        return bool(flags.any())

    def _say(self, message: str) -> None:
        if self.accelerator.is_main_process:
            warnings.warn(message, stacklevel=3)

"""With vLLM and one optimizer step per rollout batch, π_old is the policy that the loss's own pass scores.

TRL scores every rollout batch of vLLM before training on it, for the importance ratio π_old / π_engine. Where the
weights do not change in between, the forward pass that computes the loss computes the same log-probabilities. The ratio
is made there and the gradient is the same to float noise; of four units of compute (a backward pass costs two) one is
saved, with gradient checkpointing one of five.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from trainer.algorithms.engine_ratio import engine_ratio
from trainer.algorithms.strategies import Strategies
from trainer.step.compatibility import is_on_policy
from trainer.step.gradient_check import drops
from trainer.step.observers import Means
from trainer.step.planning_trainer import PlanningTrainer
from trainer.step.rollout_signals import loss_mask

if TYPE_CHECKING:
    from trl import GRPOConfig

_DIFFERENCE, _RATIO = "sampling/sampling_logp_difference", "sampling/importance_sampling_ratio"
_OF_TRL = (
    *(f"{_DIFFERENCE}/{name}" for name in ("mean", "max")),
    *(f"{_RATIO}/{name}" for name in ("min", "mean", "max")),
)


class OnPolicyTrainer(PlanningTrainer):
    """`PlanningTrainer` that leaves out TRL's scoring pass where the loss's own pass gives the same numbers.

    The metrics ``sampling/…`` are TRL's, over the tokens that are trained: rows that planned micro-batches leave out
    are not in them.

    Args:
        skip_old_logps: whether to; without vLLM's correction, or with several optimizer steps per rollout batch, there
            is nothing to skip. Where it would not be exact the pass is made, with a warning that says why.
    """

    _means: Means
    skips_old_logps = False
    _unscored = False  # the next scoring is that of π_old
    _in_loss: dict[str, Any] | None = None

    def __init__(self, *positional: Any, skip_old_logps: bool = False, **keywords: Any) -> None:
        self._extremes: Tensor | None = None  # largest difference, largest ratio, minus the smallest
        super().__init__(*positional, **keywords)
        if skip_old_logps and self._corrects_engine and is_on_policy(self.args, self.strategies):
            problems = [*_strategy_problems(self.args, self.strategies), *_model_problems(self.model)]
            self.skips_old_logps = not problems
            if problems:
                self._say(
                    f"π_old is scored in a pass of its own: {'; '.join(problems)}. To silence this write "
                    "skip_old_logps: false."
                )

    @property
    def _corrects_engine(self) -> bool:
        return bool(self.use_vllm and self.vllm_importance_sampling_correction)

    @property
    def _asks_for_old_logps(self) -> bool:
        """Whether TRL asks for π_old of a rollout batch, before it asks for the reference."""
        return self._corrects_engine or not is_on_policy(self.args, self.strategies)

    @property
    def _stores_old_logps(self) -> bool:
        """Whether the rollout batch is scored before it is trained on."""
        return self._asks_for_old_logps and not self.skips_old_logps

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        if not (self.skips_old_logps and self.model.training):
            return super()._generate_and_score_completions(inputs)
        self._unscored = True
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        for name in ("old_per_token_logps", "importance_sampling_ratio"):  # made of what was not scored
            del batch[name]
        for name in _OF_TRL:
            if len(logged := self._metrics["train"][name]) == 1:
                del self._metrics["train"][name]  # TRL divides by the length of what is there
            else:
                logged.pop()
        return batch

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        if self.skips_old_logps and self.model.training:
            self._in_loss = inputs
        try:
            return super()._compute_loss(model, inputs)
        finally:
            self._in_loss = None

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *positional: Any, **keywords: Any
    ) -> Any:
        if self._unscored:  # TRL scores π_old first, then the reference
            self._unscored = False
            return input_ids.new_full((len(input_ids), logits_to_keep), torch.nan, dtype=torch.float32), None, None
        result = super()._get_per_token_logps_and_entropies(
            model, input_ids, attention_mask, logits_to_keep, *positional, **keywords
        )
        if (batch := self._in_loss) is not None:  # TRL reads the ratio after this
            mask, engine_logps = loss_mask(batch), batch["sampling_per_token_logps"]
            ratio = engine_ratio(
                result[0],
                engine_logps,
                mask,
                self.vllm_importance_sampling_mode,
                self.vllm_importance_sampling_clip_min,
                self.vllm_importance_sampling_clip_max,
            )
            batch["importance_sampling_ratio"] = ratio
            self._measure((result[0].detach() - engine_logps).abs(), ratio, mask)
        return result

    @torch.no_grad()
    def _measure(self, difference: Tensor, ratio: Tensor, mask: Tensor) -> None:
        counted = mask.bool() & ~difference.isnan()
        self._means.add_tokens(f"{_DIFFERENCE}/mean", difference.nan_to_num(nan=0.0), counted)
        weighed = mask.bool() if ratio.shape[1] > 1 else mask.bool().any(1, keepdim=True)
        self._means.add_tokens(f"{_RATIO}/mean", ratio, weighed)
        lowest = -torch.finfo(ratio.dtype).max
        found = torch.stack(
            [
                values.masked_fill(~where, lowest).max()
                for values, where in ((difference, counted), (ratio, weighed), (-ratio, weighed))
            ]
        )
        self._extremes = found if self._extremes is None else self._extremes.maximum(found)

    def log(self, logs: dict[str, float], *positional: Any, **keywords: Any) -> None:
        if self.model.training and self._extremes is not None:
            difference, largest, smallest = self.accelerator.gather(self._extremes[None]).amax(0).tolist()
            found = {f"{_DIFFERENCE}/max": difference, f"{_RATIO}/max": largest, f"{_RATIO}/min": -smallest}
            for name, value in found.items():
                self._metrics["train"][name].append(value)
            self._extremes = None
        super().log(logs, *positional, **keywords)


def _strategy_problems(args: "GRPOConfig", strategies: Strategies) -> Iterator[str]:
    """Why π_old is needed before the loss is computed; nothing where it is not."""
    if strategies.revision is not None:
        yield "answers are generated a second time, after the rollout batch was scored"
    estimator = strategies.advantage
    if estimator is None:
        return
    asked = {"old_logps", "entropies"} & set(estimator.signals)
    if asked:
        yield f"advantage {estimator.name!r} asks for {' and '.join(sorted(asked))}"
    if args.vllm_importance_sampling_mode.startswith("sequence") and "sequence_weights" in estimator.signals:
        yield (
            f"advantage {estimator.name!r} asks for the weight of each trajectory, of which "
            f"vllm_importance_sampling_mode {args.vllm_importance_sampling_mode!r} is a factor"
        )


def _model_problems(model: Any) -> Iterator[str]:
    """Where the same weights answer differently from one pass to the next."""
    if any(drops(module) for module in model.modules()):
        yield "the model has dropout, of which each pass draws its own"
    if getattr(model.config.get_text_config(), "router_jitter_noise", 0.0):
        yield "the router of the model's experts is noisy (router_jitter_noise)"

"""Every call of TRL's log-probability hook, known by its purpose: the one place that knows in which order TRL asks.

For a rollout batch TRL asks for π_old first, where it needs it, and then for the reference, where there is one. Inside
the loss it asks for the policy that is trained. Other calls (an estimator, an evaluation) have none, and
are timed as π_old.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import trl.trainer.utils as trl_utils
from accelerate.utils import is_peft_model
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from trl.kernels.chunked_logprob import ChunkedLogProbFunction
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import add_fused_lm_head

from evenkeel.trainer.step.microbatches import Microbatches
from evenkeel.trainer.step.packing import grouped_heads, with_shared_prompts
from evenkeel.trainer.step.phases import Phases
from evenkeel.trainer.step.rollout import tokens_of
from evenkeel.trainer.step.setup import Batch, Setup, temporarily

OLD, REFERENCE = "old_logps", "reference"
_FROM_TRLS_SCORING = (
    *(f"sampling/sampling_logp_difference/{name}" for name in ("mean", "max")),
    *(f"sampling/importance_sampling_ratio/{name}" for name in ("min", "mean", "max")),
)
"""Metrics that TRL makes of π_old; `trainer.step.loss` makes the same ones where π_old is not scored beforehand."""


class Scoring:
    """Calls TRL's pass for log-probabilities as its purpose needs: not at all, with entropies, or on packed rows.

    TRL scores every rollout batch of vLLM before training on it, for the ratio π_old / π_engine. With one optimizer
    step per rollout batch the loss's pass computes the same: the ratio is made there (`trainer.step.loss`).

    Attributes:
        asks_for_old, has_reference: whether TRL asks for π_old of a rollout batch, and for the reference.
        skips_old: whether π_old is not scored although TRL asks; it is then NaN, and `complete` removes what TRL
            computes from it.
        keeps_entropies: whether a strategy wants the entropies of π_old too.
    """

    def __init__(self, setup: Setup, microbatches: Microbatches, phases: Phases) -> None:
        self.args, self.strategies, self.ranks = setup.args, setup.strategies, setup.ranks
        self.microbatches, self.phases = microbatches, phases
        self.lags, self.by_engine = setup.settings.speed.staleness > 0, setup.by_engine
        skips = setup.choices["skip_old_logps"]
        self.asks_for_old = setup.settings.corrects_engine or not setup.schedule.is_on_policy
        self.has_reference = self.args.beta != 0.0
        self.skips_old = skips or self.by_engine
        self.keeps_entropies = self.asks_for_old and not skips and self.strategies.ask_for("entropies")
        self._expected: list[str] = []  # what TRL asks for next
        self._in_loss: Batch | None = None
        self._old_entropies: Tensor | None = None

    def rollout(self) -> AbstractContextManager[None]:
        """Inside, TRL generates and scores a rollout batch."""
        expected = [OLD] * self.asks_for_old + [REFERENCE] * self.has_reference
        return temporarily(self, {"_expected": expected})

    def of(self, batch: Batch) -> AbstractContextManager[None]:
        """Inside, TRL computes the loss of a micro-batch."""
        return temporarily(self, {"_in_loss": batch})

    def __call__(
        self,
        score: Callable[..., Any],
        model: Any,
        input_ids: Tensor,
        attention_mask: Tensor,
        logits_to_keep: int,
        *positional: Any,
        is_training: bool,
        **keywords: Any,
    ) -> Any:
        """The result of ``score``, TRL's own: log-probabilities (B, T), entropies or ``None``, the router's loss."""
        purpose = self._expected.pop(0) if self._expected and self._in_loss is None else None
        if purpose == OLD and self.skips_old:
            return input_ids.new_full((len(input_ids), logits_to_keep), torch.nan, dtype=torch.float32), None, None
        if purpose == OLD and self.keeps_entropies:
            keywords["compute_entropy"] = True
        arguments = (input_ids, attention_mask, logits_to_keep, *positional)
        if self._in_loss is not None:
            scorer = model
            if (packed := self._in_loss.get("packing")) is not None:
                scorer = with_shared_prompts(model, packed)
            with cheaper_passes(model, input_ids.device) if "loss_scale" in self._in_loss else nullcontext():
                return score(scorer, *arguments, **keywords)
        planner = self.microbatches.planner
        extras = [value for name, value in keywords.items() if name not in ("batch_size", "compute_entropy")]
        plain = is_training and not positional and all(value is None for value in extras)
        if planner is not None and plain and not torch.is_grad_enabled():
            score = partial(planner.scored, score)
        cheaper = nullcontext() if planner is None else cheaper_passes(model, input_ids.device)
        with self.phases(purpose or OLD), cheaper:
            result = score(model, *arguments, **keywords)
        if purpose == OLD and self.keeps_entropies:
            self._old_entropies = result[1]
        return result

    def complete(
        self, batch: Batch, metrics: dict[str, list[float]], score: Callable[[Batch], dict[str, Tensor]]
    ) -> None:
        """Complete TRL's rollout batch: add entropies of π_old, remove what was computed from NaN; ``score`` as in
        `Rollout`."""
        if self._old_entropies is not None:
            batch["old_entropies"], self._old_entropies = self._old_entropies, None
        if self.skips_old:
            for name in ("old_per_token_logps", "importance_sampling_ratio"):
                batch.pop(name, None)
            for name in _FROM_TRLS_SCORING:
                if len(logged := metrics.get(name, [])) == 1:
                    del metrics[name]  # TRL divides by the length of what is there
                elif logged:
                    logged.pop()
        if self.by_engine:
            batch["old_per_token_logps"] = batch["sampling_per_token_logps"]
        elif self.lags and "old_per_token_logps" not in batch:
            batch |= score(batch)

    def completions(
        self, score: Callable[..., Any], model: Any, input_ids: Tensor, mask: Tensor, width: int, **keywords: Any
    ) -> tuple[Tensor, Any]:
        """``log π`` (B, T) of the last ``width`` tokens under the current policy, and entropies; no gradient."""
        size = self.args.per_device_train_batch_size
        with torch.no_grad(), disable_gradient_checkpointing(model, self.args.gradient_checkpointing_kwargs):
            logps, entropies, _ = self(
                score, model, input_ids, mask, width, is_training=True, batch_size=size, **keywords
            )
        return logps, entropies

    def old_policy(self, score: Callable[..., Any], model: Any, batch: Batch) -> dict[str, Tensor]:
        """``log π_old``, entropies and, if a strategy names it, Σ π_old² of a batch; the `score` of a `Rollout`."""
        arguments = tokens_of(batch)
        images = {name: batch[name] for name in inspect.signature(score).parameters if name in batch}
        if not self.strategies.ask_for("sum_pi_squared"):
            logps, entropies = self.completions(score, model, *arguments, compute_entropy=True, **images)
            return {"old_per_token_logps": logps, "old_entropies": entropies}
        head = self.ranks.accelerator.unwrap_model(model)
        head = head.get_base_model() if is_peft_model(head) else head
        summing = summing_squares(model, head, self.args.temperature, in_float32=self.args.cast_lm_head_to_fp32)
        with summing as logs, temporarily(self.microbatches, {"planner": None}):  # rows as TRL takes them
            logps, entropies = self.completions(score, model, *arguments, compute_entropy=True, **images)
        squares = torch.cat(logs)[:, -logps.shape[1] :].exp()
        return {"old_per_token_logps": logps, "old_entropies": entropies, "old_sum_pi_squared": squares}


@contextmanager
def cheaper_passes(model: Any, device: torch.device) -> Iterator[None]:
    """Inside, on a CPU, a pass takes less time and memory for the same numbers: with `grouped_heads`, and only places
    with a label go through TRL's fused head, by `log_probs`. The order in which numbers are added may differ."""
    own = {"_use_triton": lambda _: True, "_ChunkedLogProbFunction": SimpleNamespace(apply=log_probs)}
    with grouped_heads(model, device), temporarily(trl_utils, own if device.type == "cpu" else {}):
        yield


def log_probs(hidden: Tensor, weight: Tensor, *options: Any) -> Any:
    """TRL's head by autograd, where its three arrays (N, V) take no more than TRL's seven tiles of 32,768 words do, and
    768 MiB at most; gradients differ by 1e-5. Elsewhere TRL's, 4,096 words at a time: 32,768 take 1.5 times as long."""
    bias, targets, temperature, _, *others = options
    plain = bias is None and others == [None, 1.0, ("log_probs", "entropy")]
    plain &= hidden.dtype == weight.dtype == torch.float32
    plain &= not torch.is_autocast_enabled("cpu")
    plain &= not hasattr(weight, "ds_id")  # ZeRO-3
    plain &= len(weight) <= 2**16 and len(hidden) * len(weight) <= 2**26
    if not plain:
        return ChunkedLogProbFunction.apply(hidden, weight, bias, targets, temperature, 4096, *others)
    logs = (hidden / temperature @ weight.T).log_softmax(1)
    logps = logs.gather(1, targets[:, None]).squeeze(1)
    entropies = checkpoint(lambda each: -torch.linalg.vecdot(each.exp(), each), logs, use_reentrant=False)
    return logps, entropies, None, None, None


@contextmanager
def summing_squares(model: nn.Module, head: Any, temperature: float, *, in_float32: bool) -> Iterator[list[Tensor]]:
    """Yields a list that gets ``log Σ_v π(v)²`` (B, P + T − 1) of each pass of ``model``: inside, TRL's fused head on
    ``head`` also sums squares."""
    found: list[Tensor] = []
    heard = model.register_forward_hook(lambda module, given, outputs: found.append(outputs.log_sum_sq_probs))
    with temporarily(head, {"forward": head.forward}), heard:
        add_fused_lm_head(head, temperature, in_float32, outputs=("log_probs", "entropy", "log_sum_sq_probs"))
        yield found

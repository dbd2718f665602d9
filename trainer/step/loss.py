"""From TRL's loss of a micro-batch to the strategies': ``A`` becomes ``A · w · keep · c`` before TRL reads it.

No body of TRL is copied. Its loss reads the batch's advantages, and with vLLM its importance ratio, after it has asked
for the log-probabilities of the policy: `Loss.write_advantages` writes both then.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.contract import COEFFICIENT, TOKEN_WEIGHT
from evenkeel.trainer.algorithms.engine_ratio import engine_ratio
from evenkeel.trainer.algorithms.signals import token_signals
from evenkeel.trainer.step.metrics import Means, SharedPrefixMeter, add_lag, add_token_metrics, over_all_microbatches
from evenkeel.trainer.step.rollout import kept_tokens, loss_mask
from evenkeel.trainer.step.setup import Batch, Position, Setup, temporarily

_DIFFERENCE, _RATIO = "sampling/sampling_logp_difference", "sampling/importance_sampling_ratio"
_NOISE = "rounding/log_prob/mean_abs"


class Loss:
    """Applies the strategies to TRL's loss of each micro-batch, and measures it.

    **π_old and rounding.** Half precision gives the same token another log-probability in the pass that scores π_old
    than in the one that trains. So where a strategy reads π_old through a ratio, the rows that are trained before the
    policy has moved take π_old from that training pass, for later passes too: their ratio is exactly 1. Rows whose
    first training pass comes after an optimizer step keep it as it was scored. An update schedule selects by the scored
    π_old in every pass, so that its passes stay a partition.

    Attributes:
        means: everything measured since the last log line.
    """

    def __init__(self, setup: Setup) -> None:
        args, strategies = setup.args, setup.strategies
        self.args, self.strategies, self.schedule, self.ranks = args, strategies, setup.schedule, setup.ranks
        self.epsilon_high = args.epsilon if args.epsilon_high is None else args.epsilon_high  # where cispo clips
        self.makes_ratio = setup.choices["skip_old_logps"]
        self.lags, self.by_engine = setup.settings.speed.staleness > 0, setup.by_engine
        self.means, self.shared_prefixes = Means(), SharedPrefixMeter()
        self._checks: list[tuple[Tensor, Callable[[], PartError]]] = []
        self._current: tuple[Batch, Position] | None = None
        self._generated_after = 0
        self._reads_ratio = any(
            strategies.ask_for(signal, kind)
            for signal, kind in (("log_ratio", COEFFICIENT), ("old_logps", COEFFICIENT), ("old_logps", TOKEN_WEIGHT))
        )
        self._old_logps: Tensor | None = None  # of the rollout batch; a last row of 0 for padding

    def begin_training(self) -> None:
        """Drop the checks of an optimizer step that was not finished."""
        self._checks = []

    def start_rollout(self, batch: Batch, shared_prefixes: Tensor, step: int) -> None:
        """Start on a rollout ``batch`` generated after ``step`` optimizer steps; may add ``rollout_row`` to it.

        Args:
            shared_prefixes: (N,) tokens of the prefix that the group of each row of all ranks shares.
        """
        self._generated_after, self._old_logps = step, None
        if self._reads_ratio and (old := batch.get("old_per_token_logps")) is not None:
            self._old_logps = torch.cat([old, torch.zeros_like(old[:1])])
            batch["rollout_row"] = torch.arange(len(old), device=old.device)
        num_groups = len(shared_prefixes) // self.args.num_generations
        self.shared_prefixes.expect(num_groups, int(shared_prefixes.max()), shared_prefixes.device)

    @contextmanager
    def of(self, microbatch: Batch, position: Position) -> Iterator[Batch]:
        """Inside, TRL computes the loss of the yielded copy of ``microbatch``; later passes use the original."""
        batch = dict(microbatch)
        if self.schedule.num_passes > 1:
            self._select_pass(batch, self.schedule.pass_index(position.microbatches))
        with temporarily(self, {"_current": (batch, position)}):
            yield batch

    def write_advantages(self, logps: Tensor, entropies: Tensor | None) -> None:
        """Write the ratio and the advantages that TRL reads next; ``logps`` (B, T) of the policy carry its gradient."""
        if self._current is None:
            return
        batch, position = self._current
        if self.makes_ratio:
            self._write_ratio(batch, logps)
        batch |= {"logps": logps.detach(), "entropies": None if entropies is None else entropies.detach()}
        mask = batch.get("all_passes_mask", loss_mask(batch))
        keeps_old = self.by_engine or position.step > self._generated_after
        old = batch.get("old_per_token_logps")
        if old is not None and not keeps_old:
            self.means.add_tokens(_NOISE, (batch["logps"] - old).abs(), mask)
        if self._old_logps is not None:
            place = batch["rollout_row"], slice(logps.shape[1])
            if not keeps_old:
                self._old_logps[place] = batch["logps"]
                self._old_logps[-1] = 0.0
            batch["old_per_token_logps"] = self._old_logps[place] if keeps_old else batch["logps"]
        if (reference := batch.get("ref_per_token_logps")) is not None:
            away = reference - batch["logps"]
            self.means.add_tokens("groups/kl_dead", away.exp() - away - 1, mask * batch["dead"][:, None])
        batch["advantages"] = self._token_advantages(batch, mask, position)
        if self.lags:
            add_lag(self.means, batch["logps"] - batch["old_per_token_logps"], mask)
        if (scale := batch.get("row_scale")) is not None:
            batch["advantages"] = batch["advantages"] * scale.view(-1, *[1] * (batch["advantages"].dim() - 1))
        self.shared_prefixes.watch(logps, batch["groups"], batch["shared_prefix"])

    def finish(self, loss: Tensor, batch: Batch, metrics: dict[str, list[float]], *, is_last: bool) -> Tensor:
        """The loss to train on, made of TRL's; corrects TRL's metrics of the micro-batch.

        Args:
            is_last: whether the micro-batch is the last of its optimizer step. Results of strategies are then checked,
                before the backward pass, in which DeepSpeed makes the optimizer step.

        Raises:
            PartError: a token weight or coefficient broke its contract in this optimizer step.
        """
        if is_last and self._checks:
            flags, errors = zip(*self._checks, strict=True)
            self._checks = []
            for is_bad, error in zip(torch.stack(flags).tolist(), errors, strict=True):  # waits for the device once
                if is_bad:
                    raise error()
        if self.strategies.coefficient is not None:
            metrics.pop("cispo_clip_ratio", None)  # TRL's cap has been divided out
        if "loss_scale" not in batch:  # not planned
            return loss
        by_sequence = self.args.importance_sampling_level == "sequence" and batch["advantages"].dim() == 1
        over_all_microbatches(metrics, self.means, batch, by_sequence=by_sequence)
        return loss * batch["loss_scale"]

    def apart(self) -> AbstractContextManager[None]:
        """Inside, losses are computed for comparison only: their measurements are discarded."""
        kept = None if self._old_logps is None else self._old_logps.clone()
        return temporarily(self, {"means": Means(), "shared_prefixes": SharedPrefixMeter(), "_old_logps": kept})

    def _select_pass(self, batch: Batch, pass_index: int) -> None:
        """Note in ``batch`` which of its tokens the current pass trains."""
        mask = loss_mask(batch)
        if (keep := batch.get("keep")) is None:
            keep = kept_tokens(self.strategies.schedule, batch, pass_index)
        batch |= {"keep": keep, "all_passes_mask": mask}
        if self.args.beta != 0.0:  # the KL term too acts on this pass's tokens alone; see `compatibility._passes`
            batch["tool_mask"] = keep.to(mask.dtype)

    @torch.no_grad()
    def _token_advantages(self, batch: Batch, mask: Tensor, position: Position) -> Tensor:
        """``A·w·keep``, times ``c / min(ρ, ε_high)`` where there is a coefficient c; (B,) or (B, T).

        TRL's ``cispo`` multiplies advantages by ``min(ρ, ε_high)``, so c takes its place. Where ρ underflows
        (log ρ < −87) the token has no gradient.
        """
        logps = batch["logps"]
        signals = token_signals(
            logps=logps,
            old_logps=batch.get("old_per_token_logps", logps),
            teacher_logps=batch.get("teacher_logps"),
            teacher_contrast=batch.get("teacher_contrast"),
            advantages=batch["advantages"],
            mask=mask,
            entropies=batch.get("old_entropies", batch["entropies"]),
            completion_ids=batch["completion_ids"],
            groups=batch["groups"],
            scored=batch["scored"],
            row_keys=lambda: batch["row_keys"],
            step=position.step,
            max_steps=position.max_steps,
        )
        factors = update.token_factors(
            self.strategies,
            signals,
            position.where,
            keep=batch.get("keep"),
            suspect=lambda bad, error: self._checks.append((bad.any(), error)),
        )
        advantages = factors.weighted(batch["advantages"])
        per_token = advantages if advantages.dim() == 2 else advantages.unsqueeze(1).expand_as(logps)
        if factors.weights is not None:
            self.means.add_tokens("token_weight/mean", factors.weights, mask)
        add_token_metrics(self.means, signals["probs"], per_token, mask)
        if factors.coefficients is not None:
            ratio = signals["log_ratio"].exp().clamp(max=self.epsilon_high)
            undone = torch.where(ratio > torch.finfo(ratio.dtype).tiny, factors.coefficients / ratio, 0.0)
            advantages = per_token * undone
            self.means.add_tokens("coefficient/mean", factors.coefficients, mask)
            self.means.add_tokens("coefficient/frac_negative", (factors.coefficients < 0).float(), mask)
        return advantages

    @torch.no_grad()
    def _write_ratio(self, batch: Batch, logps: Tensor) -> None:
        """Write TRL's importance ratio for vLLM's samples into the batch, and add the metrics that TRL would log."""
        mask, engine_logps = loss_mask(batch), batch["sampling_per_token_logps"]
        clip = self.args.vllm_importance_sampling_clip_min, self.args.vllm_importance_sampling_clip_max
        ratio = engine_ratio(logps, engine_logps, mask, self.args.vllm_importance_sampling_mode, *clip)
        batch["importance_sampling_ratio"] = ratio
        difference = (logps.detach() - engine_logps).abs()
        counted = mask.bool() & ~difference.isnan()
        weighed = mask.bool() if ratio.shape[1] > 1 else mask.bool().any(1, keepdim=True)
        self.means.add_tokens(f"{_DIFFERENCE}/mean", difference.nan_to_num(nan=0.0), counted)
        self.means.add_tokens(f"{_RATIO}/mean", ratio, weighed)
        self.means.add_largest(f"{_DIFFERENCE}/max", difference.where(counted, 0.0).max())

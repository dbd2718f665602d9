"""Advantages of a micro-batch's tokens as the loss shall see them: weighted, of the current pass, with coefficients."""

from typing import Any

import torch
from torch import Tensor

from trainer.algorithms.results import Suspect, checked_coefficients, checked_token_weights
from trainer.algorithms.strategies import Strategies
from trainer.step.observers import Means, add_token_metrics
from trainer.step.signals import Signals


@torch.no_grad()
def token_advantages(
    strategies: Strategies,
    batch: dict[str, Any],
    logps: Tensor,
    entropies: Tensor | None,
    mask: Tensor,
    *,
    keep: Tensor | None,
    epsilon_high: float,
    step: int,
    max_steps: int,
    means: Means,
    suspect: Suspect,
) -> Tensor:
    """``A·w`` on the tokens that ``keep`` selects, and what makes TRL's ``cispo`` apply a coefficient; (B,) or (B, T).

    A coefficient c is to take the place of TRL's ``min(ρ, ε_high)``, which it multiplies advantages by: they are
    divided by it. Where ρ underflows (log ρ < −87) the token has no gradient.

    Args:
        batch: the micro-batch; its ``advantages`` are (B,) or (B, T), those of π_old absent where π is π_old.
        logps, entropies: log π and its entropy of the current pass (B, T), detached.
        mask: tokens that the loss counts over all passes (B, T).
        suspect: what is to be made of a weight or coefficient that breaks its contract.
    """
    advantages, where = batch["advantages"], f"at optimizer step {step}"
    old_logps = batch.get("old_per_token_logps", logps)
    per_token = advantages if advantages.dim() == 2 else advantages.unsqueeze(1).expand_as(logps)
    probs = old_logps.exp()
    signals = Signals(
        logps=logps,
        old_logps=old_logps,
        probs=probs,
        log_ratio=lambda: logps - old_logps,
        advantages=per_token,
        mask=mask,
        entropies=batch.get("old_entropies", entropies),
        completion_ids=batch["completion_ids"],
        groups=batch["groups"],
        judged=batch["judged"],
        row_keys=lambda: batch["row_keys"],
        step=step,
        max_steps=max_steps,
    )
    weight, coefficient = strategies.token_weight, strategies.coefficient
    if weight is not None:
        weights = checked_token_weights(weight, weight(signals), mask, where, suspect)
        advantages = per_token * weights
        means.add_tokens("token_weight/mean", weights, mask)
    if keep is not None:
        advantages = (per_token if weight is None else advantages) * keep
    add_token_metrics(means, probs, advantages, mask)
    if coefficient is not None:
        factors = checked_coefficients(coefficient, coefficient(signals), mask, where, suspect)
        ratio = signals["log_ratio"].exp().clamp(max=epsilon_high)
        undone = torch.where(ratio > torch.finfo(ratio.dtype).tiny, factors / ratio, 0.0)
        advantages = (per_token if advantages.dim() == 1 else advantages) * undone
        means.add_tokens("coefficient/mean", factors, mask)
        means.add_tokens("coefficient/frac_negative", (factors < 0).float(), mask)
    return advantages

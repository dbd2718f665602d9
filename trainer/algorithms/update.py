"""What a set of strategies makes of a batch: the advantages of its completions and the factors of its tokens.

The gradient of an update is ``−Σ A_{i,t} · w_{i,t} · keep_{i,t} · c_{i,t} · ∇log π(t)``, divided by what the loss
divides by. The trainer, the gradient bench and the page of rollouts all take ``A`` from `advantages` and the rest from
`token_factors`. What a strategy may name is assembled in `estimator_signals` and `token_signals`: a new signal is one
entry in `trainer.algorithms.contract.SIGNALS` and one line there.

N completions on all ranks, B on this rank's forward pass, T tokens, F reward functions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.algorithms.results import (
    Suspect,
    checked_advantages,
    checked_coefficients,
    checked_token_weights,
    raised_at_once,
)
from trainer.algorithms.strategies import Strategies


class Signals(Mapping[str, Any]):
    """Name → value; a callable given as a source is called at the first look-up, and its value kept."""

    def __init__(self, **sources: Any) -> None:
        self._sources = sources
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            source = self._sources[name]
            self._values[name] = source() if callable(source) else source
        return self._values[name]

    def add(self, **sources: Any) -> None:
        """More signals, or others in place of those that were given."""
        self._sources |= sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def weighted_sum(rewards_per_function: Tensor, reward_weights: Tensor) -> Tensor:
    """Rewards (N,) of (N, F) with weights (F,); NaN where no function judged the completion."""
    weighted = rewards_per_function * reward_weights.to(rewards_per_function.device).unsqueeze(0)
    return weighted.nansum(dim=1).masked_fill(rewards_per_function.isnan().all(dim=1), torch.nan)


def estimator_signals(
    *,
    rewards_per_function: Tensor,
    reward_weights: Tensor,
    group_size: int,
    mask: Tensor,
    completion_ids: Any,
    correct: Any,
    old_logps: Any,
    entropies: Any,
    sequence_weights: Any,
    step: int,
    max_steps: int,
    **columns: Any,
) -> Signals:
    """What an advantage estimator may name (`SIGNALS`), and the columns that reward functions logged.

    Each is a value or a callable that computes it, called when a strategy asks.
    """
    return Signals(
        rewards=lambda: weighted_sum(rewards_per_function, reward_weights),
        group_size=group_size,
        rewards_per_function=rewards_per_function,
        reward_weights=reward_weights.to(rewards_per_function.device),
        correct=correct,
        lengths=lambda: mask.sum(1),
        completion_ids=completion_ids,
        mask=mask,
        old_logps=old_logps,
        entropies=entropies,
        sequence_weights=sequence_weights,
        step=step,
        max_steps=max_steps,
        **columns,
    )


def token_signals(
    *,
    logps: Any,
    old_logps: Any,
    advantages: Tensor,
    mask: Tensor,
    entropies: Any,
    completion_ids: Any,
    groups: Any,
    judged: Any,
    row_keys: Any,
    step: int,
    max_steps: int,
) -> Signals:
    """What a token weight or a coefficient may name (`SIGNALS`); ``advantages`` (B,) or (B, T).

    What is not known is ``None``; ``row_keys`` may be a callable that computes them when a strategy asks.
    """
    return Signals(
        logps=logps,
        old_logps=old_logps,
        probs=lambda: old_logps.exp(),
        log_ratio=lambda: logps - old_logps,
        advantages=advantages if advantages.dim() == 2 else advantages.unsqueeze(1).expand(mask.shape),
        mask=mask,
        entropies=entropies,
        completion_ids=completion_ids,
        groups=groups,
        judged=judged,
        row_keys=row_keys,
        step=step,
        max_steps=max_steps,
    )


def advantages(strategies: Strategies, signals: Mapping[str, Any], where: str) -> Tensor:
    """What the estimator makes of a rollout batch, (N,) or (N, T): 0 where nobody judged, and in groups without signal.

    Args:
        signals: as `estimator_signals` gives them; ``strategies`` must have an estimator.
        where: for messages, e.g. ``at optimizer step 12``.

    Raises:
        PartError: its result breaks its contract (see `checked_advantages`).
    """
    estimator = strategies.advantage
    assert estimator is not None
    shape = signals["group_size"], signals["mask"].shape[1]
    return checked_advantages(estimator, estimator(signals), signals["rewards"], *shape, where).nan_to_num(nan=0.0)


@dataclass(frozen=True)
class TokenFactors:
    """What multiplies the advantages of tokens, each (B, T) or ``None`` = 1 everywhere.

    Attributes:
        weights: ``w ≥ 0``.
        keep: which tokens the current pass trains.
        coefficients: ``c``, what stands in place of the loss's clipped ratio.
    """

    weights: Tensor | None
    keep: Tensor | None
    coefficients: Tensor | None

    def weighted(self, advantages: Tensor) -> Tensor:
        """``A · w · keep``: (B, T), or ``advantages`` as they are where there is neither."""
        weighted = advantages
        for factor in (self.weights, self.keep):
            if factor is not None:
                per_token = weighted if weighted.dim() == 2 else weighted.unsqueeze(1).expand(factor.shape)
                weighted = per_token * factor
        return weighted


@torch.no_grad()
def token_factors(
    strategies: Strategies,
    signals: Mapping[str, Any],
    where: str,
    *,
    keep: Tensor | None = None,
    suspect: Suspect = raised_at_once,
) -> TokenFactors:
    """The factors of a micro-batch's tokens, 0 where the mask counts none.

    Args:
        signals: as `token_signals` gives them.
        where: for messages, e.g. ``at optimizer step 12``.
        keep: what `UpdateSchedule.kept` selected for the pass. It is not computed here: a schedule may look at all rows
            of the loss's own micro-batch, and these may have been put into others since.
        suspect: what is to be made of a weight or coefficient that breaks its contract.

    Raises:
        PartError: a result breaks its contract (see `checked_token_weights`, `checked_coefficients`).
    """
    mask, weight, coefficient = signals["mask"], strategies.token_weight, strategies.coefficient
    return TokenFactors(
        None if weight is None else checked_token_weights(weight, weight(signals), mask, where, suspect),
        keep,
        None if coefficient is None else checked_coefficients(coefficient, coefficient(signals), mask, where, suspect),
    )

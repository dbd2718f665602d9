"""Applies a run's strategies to a batch: the advantages of its completions and the factors of its tokens.

The gradient of an update is ``−Σ A_{i,t} · w_{i,t} · keep_{i,t} · c_{i,t} · ∇log π(t)``, over the loss's denominator.
The trainer, the gradient bench and the page of rollouts all take ``A`` from `advantages` and the rest from
`token_factors`; `evenkeel.trainer.algorithms.signals` makes their signals.

N completions on all ranks, B on this rank's forward pass, T tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.algorithms.registry import Strategy
from evenkeel.trainer.algorithms.results import Suspect, checked_advantages, checked_factors, raised_at_once
from evenkeel.trainer.algorithms.strategies import Strategies


def advantages(strategies: Strategies, signals: Mapping[str, Any], where: str) -> Tensor:
    """The estimator's advantages of a rollout batch, (N,) or (N, T): 0 for unscored responses and dead groups.

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
    """Factors of tokens' advantages, each (B, T) or ``None`` = 1 everywhere.

    Attributes:
        weights: ``w ≥ 0``.
        keep: whether the current pass trains the token.
        coefficients: ``c``, in place of the loss's clipped ratio.
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
        keep: selected by `UpdateSchedule.kept` for the pass. It is not computed here: a schedule may look at all rows
            of TRL's micro-batch, and rows may have been put into others since.
        suspect: handles a weight or coefficient that breaks its contract.

    Raises:
        PartError: a result breaks its contract (see `checked_factors`).
    """
    mask = signals["mask"]

    def factor(part: Strategy | None) -> Tensor | None:
        return None if part is None else checked_factors(part, part(signals), mask, where, suspect)

    return TokenFactors(factor(strategies.token_weight), keep, factor(strategies.coefficient))

"""Assembles the signals that a strategy may name. A new signal is an entry in `trainer.algorithms.contract.SIGNALS` and
a source where the trainer and the tiny example of `trial` make their signals.

N completions on all ranks, B on this rank's forward pass, T tokens, F reward functions.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.algorithms.turns import turn_numbers


class Signals(Mapping[str, Any]):
    """Name → value; a source that is callable is called at the first lookup, and its value kept."""

    def __init__(self, **sources: Any) -> None:
        self._sources = sources
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            source = self._sources[name]
            self._values[name] = source() if callable(source) else source
        return self._values[name]

    def add(self, **sources: Any) -> None:
        """Add sources, or replace some; a value that was looked up before stays."""
        self._sources |= sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def weighted_sum(rewards_per_function: Tensor, reward_weights: Tensor) -> Tensor:
    """Rewards (N,) of (N, F) with weights (F,); NaN where no function scored the completion."""
    weighted = rewards_per_function * reward_weights.to(rewards_per_function.device).unsqueeze(0)
    return weighted.nansum(dim=1).masked_fill(rewards_per_function.isnan().all(dim=1), torch.nan)


def estimator_signals(*, rewards_per_function: Tensor, reward_weights: Tensor, mask: Tensor, **sources: Any) -> Signals:
    """The signals of an advantage estimator (`SIGNALS`): those that follow from the three tensors, and ``sources``.

    Each source, also a column of a reward function, is a value or a callable that computes it at the first lookup.
    """
    return Signals(
        rewards=lambda: weighted_sum(rewards_per_function, reward_weights),
        rewards_per_function=rewards_per_function,
        reward_weights=reward_weights.to(rewards_per_function.device),
        lengths=lambda: mask.sum(1),
        mask=mask,
        turns=lambda: turn_numbers(mask),
        **sources,
    )


def token_signals(*, logps: Any, old_logps: Any, advantages: Tensor, mask: Tensor, **sources: Any) -> Signals:
    """The signals of a token weight or a coefficient (`SIGNALS`); ``advantages`` (B,) or (B, T)."""
    return Signals(
        logps=logps,
        old_logps=old_logps,
        probs=lambda: old_logps.exp(),
        log_ratio=lambda: logps - old_logps,
        advantages=advantages if advantages.dim() == 2 else advantages.unsqueeze(1).expand(mask.shape),
        mask=mask,
        **sources,
    )

"""What a strategy may name, assembled: a new signal is one entry in `trainer.algorithms.contract.SIGNALS` and one line
here. The trainer, the tiny example on which strategies are tried, the gradient bench and the page of rollouts all take
their signals from `estimator_signals` and `token_signals`.

N completions on all ranks, B on this rank's forward pass, T tokens, F reward functions.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from evenkeel.trainer.algorithms.turns import turn_numbers


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
    sum_pi_squared: Any,
    teacher_logps: Any,
    teacher_contrast: Any,
    sequence_weights: Any,
    turn_rewards: Any,
    state_keys: Any,
    step: int,
    max_steps: int,
    **columns: Any,
) -> Signals:
    """What an advantage estimator may name (`SIGNALS`), and the columns that reward functions logged.

    Each is a value or a callable that computes it, called when a strategy asks; ``None`` = not known.
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
        sum_pi_squared=sum_pi_squared,
        teacher_logps=teacher_logps,
        teacher_contrast=teacher_contrast,
        sequence_weights=sequence_weights,
        turns=lambda: turn_numbers(mask),
        turn_rewards=turn_rewards,
        state_keys=state_keys,
        step=step,
        max_steps=max_steps,
        **columns,
    )


def token_signals(
    *,
    logps: Any,
    old_logps: Any,
    teacher_logps: Any,
    teacher_contrast: Any,
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
        teacher_logps=teacher_logps,
        teacher_contrast=teacher_contrast,
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

"""Arithmetic inside a group. A group's rows are adjacent; NaN = unscored, left out of every mean."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

GROUP_STD_EPSILON = 1e-4
"""ε of the group standard deviation, in reward units (TRL's value: bitwise parity needs it)."""
DEAD_SPREAD = 1e-6
"""Rewards of a group that differ by less than this share of the largest in magnitude are equal."""


def dead_groups(rewards: Float[Tensor, "N"], group_size: int) -> Bool[Tensor, "N"]:
    """Rows of groups that hold nothing to learn: ``max − min ≤ 1e-6·max(|max|, |min|)`` over the scored rewards.

    Relative, because weights .3 and .5 with scores (.5, 2) and (3, .5) reach the same total one ulp apart, and an
    estimator that divides by the spread turns that ulp into ±1.5. A group without a scored row is dead too.
    """
    grouped = rewards.view(-1, group_size)
    highest = grouped.nan_to_num(nan=-torch.inf).amax(1)
    lowest = grouped.nan_to_num(nan=torch.inf).amin(1)
    tolerance = DEAD_SPREAD * torch.maximum(highest.abs(), lowest.abs())
    return (highest - lowest <= tolerance).repeat_interleave(group_size)


def finished(advantages: Tensor, rewards: Tensor, group_size: int) -> Tensor:
    """Exact zeros for dead groups, NaN for unscored rows; (N,) or (N, T)."""
    dead, unscored = dead_groups(rewards, group_size), rewards.isnan()
    if advantages.dim() == 2:
        dead, unscored = dead[:, None], unscored[:, None]
    return advantages.masked_fill(dead, 0.0).masked_fill(unscored, torch.nan)


def group_mean(rewards: Tensor, group_size: int) -> Tensor:
    """Mean of the scored rewards of the row's group; NaN where none was scored."""
    return rewards.view(-1, group_size).nanmean(1).repeat_interleave(group_size)


def group_scale(rewards: Tensor, group_size: int) -> Tensor:
    """``std_G r + ε`` over the scored rewards, ddof = 1, in TRL's order of operations (they decide the last bit)."""
    grouped = rewards.view(-1, group_size)
    count = (~grouped.isnan()).sum(1, keepdim=True).to(rewards.dtype)
    squares = (grouped - grouped.nanmean(1, keepdim=True)) ** 2
    variance = squares.nanmean(1, keepdim=True) * (count / (count - 1))
    return variance.sqrt().view(-1).repeat_interleave(group_size) + GROUP_STD_EPSILON


def group_count(rows: Tensor, group_size: int) -> Tensor:
    """Number of rows of the row's group that are True."""
    return rows.view(-1, group_size).sum(1).repeat_interleave(group_size)


def scored_right(rewards: Tensor, right_at: float) -> tuple[Tensor, Tensor]:
    """(right, wrong): scored rows whose reward is at least ``right_at``, and the other scored rows."""
    right = rewards >= right_at
    return right, ~right & ~rewards.isnan()

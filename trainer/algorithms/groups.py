"""Arithmetic inside a group. A group's rows are adjacent; NaN = unjudged, left out of every mean."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

GROUP_STD_EPSILON = 1e-4
"""ε of the group standard deviation, in reward units (TRL's value: bitwise parity needs it)."""


def dead_groups(rewards: Float[Tensor, "N"], group_size: int) -> Bool[Tensor, "N"]:
    """Rows of groups that hold nothing to learn: all judged rewards equal, or nothing judged."""
    grouped = rewards.view(-1, group_size)
    highest = grouped.nan_to_num(nan=-torch.inf).amax(1)
    lowest = grouped.nan_to_num(nan=torch.inf).amin(1)
    return (highest <= lowest).repeat_interleave(group_size)


def finished(advantages: Tensor, rewards: Tensor, group_size: int) -> Tensor:
    """Exact zeros for dead groups, NaN for unjudged rows; (N,) or (N, T)."""
    dead, unjudged = dead_groups(rewards, group_size), rewards.isnan()
    if advantages.dim() == 2:
        dead, unjudged = dead[:, None], unjudged[:, None]
    return advantages.masked_fill(dead, 0.0).masked_fill(unjudged, torch.nan)


def group_mean(rewards: Tensor, group_size: int) -> Tensor:
    return rewards.view(-1, group_size).nanmean(1).repeat_interleave(group_size)


def group_scale(rewards: Tensor, group_size: int) -> Tensor:
    """``std_G r + ε`` over the judged rewards, ddof = 1, in TRL's order of operations (they decide the last bit)."""
    grouped = rewards.view(-1, group_size)
    count = (~grouped.isnan()).sum(1, keepdim=True).to(rewards.dtype)
    variance = ((grouped - grouped.nanmean(1, keepdim=True)) ** 2).nanmean(1, keepdim=True) * (count / (count - 1))
    return variance.sqrt().view(-1).repeat_interleave(group_size) + GROUP_STD_EPSILON

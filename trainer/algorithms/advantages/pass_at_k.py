"""Advantages whose goal is that one of k responses is right, not that each is."""

from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from evenkeel.trainer.algorithms.groups import finished, group_count, group_scale, scored_right

PASS_STD_EPSILON = 1e-6
"""ε of the standard deviation of pass@k."""


def pass_at_k(
    rewards: Float[Tensor, "N"], group_size: int, *, k: Annotated[int, Field(ge=1)] = 4, right_at: float = 1.0
) -> Float[Tensor, "N"]:
    """The exact advantage of a response as a member of all subsets of k, each rewarded for one right answer.

    With c of the n scored responses right: ``ρ = 1 − C(n−c, k)/C(n, k)``, ``σ = √(ρ(1−ρ))``; a right response gets
    ``(1−ρ)/(σ+ε)``, a wrong one ``(1 − ρ − C(n−c−1, k−1)/C(n−1, k−1))/(σ+ε)``, ε = 1e-6. At k = 1 it is `grpo` with
    the std of ddof = 0. Where no k responses can all be wrong (n − c < k) there is nothing left to learn: 0.

    A response is right where its reward is at least ``right_at``. A group with fewer than k verdicts uses all it has.

    Raises:
        ValueError: k > group_size.

    Source: Pass@k training (arXiv 2508.10751), analytical derivation.
    Evidence: golden table from running the authors' ``calc_adv``.
    """
    if k > group_size:
        raise ValueError(f"pass_at_k: k = {k} is more than the {group_size} responses of a group. Write less.")
    right, wrong = scored_right(rewards, right_at)
    exact = torch.float64
    wrongs = group_count(wrong, group_size).to(exact)
    count = group_count(right | wrong, group_size).to(exact)
    size = count.clamp(max=k)
    all_wrong = _ratio_of_binomials(wrongs, count, size, k)
    all_wrong_with_this = _ratio_of_binomials(wrongs - 1, count - 1, size - 1, k - 1)
    scale = (all_wrong * (1 - all_wrong)).sqrt() + PASS_STD_EPSILON
    advantages = (all_wrong - all_wrong_with_this * wrong) / scale
    return finished(advantages.to(rewards.dtype), rewards, group_size)


def pass_at_k_max_gap(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Only the best response of a group is trained, by how far it is ahead of the second.

    ``A = (r₍₁₎ − r₍₂₎) / (std_G r + ε)`` for the best scored response, 0 for all others (all, where two are best).

    Source: pass@k policy gradient (arXiv 2503.19595), as verl writes it (``grpo_passk``).
    Evidence: golden table from running verl's ``compute_grpo_passk_outcome_advantage``.
    Limits: at rewards of 0 and 1 it trains only groups with exactly one right answer.
    """
    ranked = rewards.nan_to_num(nan=-torch.inf).view(-1, group_size)
    if group_size == 1:
        return finished(rewards, rewards, group_size)
    first, second = ranked.topk(2, dim=1).values.unbind(1)
    gap = (first - second).repeat_interleave(group_size) / group_scale(rewards, group_size)
    best = rewards == first.repeat_interleave(group_size)
    return finished(gap.where(best, 0.0), rewards, group_size)


def _ratio_of_binomials(top: Tensor, bottom: Tensor, size: Tensor, largest: int) -> Tensor:
    """``C(top, size) / C(bottom, size)`` for whole numbers ≤ ``largest`` in ``size``; 0 where top < size."""
    ratio = torch.ones_like(top)
    for index in range(largest):
        factor = (top - index).clamp(min=0) / (bottom - index).clamp(min=1)
        ratio = ratio * factor.where(index < size, 1.0)
    return ratio

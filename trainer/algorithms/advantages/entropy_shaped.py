"""Token advantages shaped by the entropy of the policy at each position."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import AboveOne, NotNegative
from evenkeel.trainer.algorithms.groups import finished, scored_right

ENTROPY_EPSILON = 1e-8
"""Keeps 1/H finite, in nats; also added to the variance of shaped rewards."""


def entropy_shaped(
    rewards: Float[Tensor, "N"],
    group_size: int,
    entropies: Float[Tensor, "N T"],
    *,
    alpha: NotNegative = 0.4,
    kappa: AboveOne = 2.0,
) -> Float[Tensor, "N T"]:
    """GRPO with a bonus for tokens at which the policy was undecided.

    ``A_{i,t} = grpo_i + min(α H_{i,t}, |grpo_i| / κ)``: κ > 1 keeps the sign of every advantage.

    Source: Reasoning with Exploration (arXiv 2506.14758).
    Evidence: formula read in a detailed third-party digest of the paper.
    Limits: α = 0.4 and κ = 2 are the values commonly quoted for GRPO; no source that could be read confirms them.
    """
    base = grpo(rewards, group_size)[:, None]
    bonus = (alpha * entropies.to(rewards.dtype)).minimum(base.abs() / kappa)
    return finished(base + bonus, rewards, group_size)


def gtpo(
    rewards: Float[Tensor, "N"],
    group_size: int,
    entropies: Float[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    *,
    alpha_1: NotNegative = 1.0,
    alpha_2: NotNegative = 0.1,
    right_at: float = 1.0,
) -> Float[Tensor, "N T"]:
    """Right answers credited where the policy was undecided, wrong ones blamed where it was sure.

    Right and wrong responses of a group apart, position by position, over the n_t of them that have a token t:
    ``r̃⁺ = α₁ r_i + α₂ n_t H_{i,t} / Σ H_{k,t}``, ``r̃⁻ = −α₁ − α₂ n_t H_{i,t}^{−1} / Σ H_{k,t}^{−1}``; then
    ``A = (r̃ − mean r̃) / √(var r̃ + ε)`` over the tokens of the right, and of the wrong, responses of the group
    (ddof = 0, ε = 1e-8). Tokens outside ``mask`` get 0.

    Source: GTPO (arXiv 2508.04349), Eq. 3, 5 and 6; α₁ = 1, α₂ = 0.1.
    Evidence: formula read in a third-party implementation (textpolicy) that cites these equations; golden table from
        its equations, run apart.
    Limits: the mean of right answers is subtracted from them, so equal rewards cancel: at r ∈ {0, 1} what is left is
        entropy alone, and a right answer's sure tokens are pushed down. A group of equal rewards gets 0. In several
        turns a position counts what tools inserted before it.
    """
    counted = mask.bool()
    # in single precision the rounding of a constant r̃ over √ε would be seen
    exact = entropies.double()
    shaped = torch.zeros_like(exact)
    right, wrong = scored_right(rewards, right_at)
    for rows, credit, base in (
        (right, exact, alpha_1 * rewards.nan_to_num().double()),
        (wrong, -1 / (exact + ENTROPY_EPSILON), exact.new_full(rewards.shape, -alpha_1)),
    ):
        tokens = (rows[:, None] & counted).view(-1, group_size, mask.shape[1])
        shares = _share_at_position(credit.view_as(tokens), tokens)
        values = base.view(-1, group_size, 1) + alpha_2 * shares
        shaped = shaped + _standardized(values, tokens).view_as(shaped)
    return finished(shaped.to(rewards.dtype), rewards, group_size)


def _share_at_position(credit: Tensor, tokens: Tensor) -> Tensor:
    """``n_t · credit / |Σ credit|`` over the rows of a group that have the position, (groups, G, T); 0 where Σ is 0."""
    credit = credit.where(tokens, 0.0)
    total = credit.sum(1, keepdim=True).abs()
    return tokens.sum(1, keepdim=True) * credit / total.clamp(min=ENTROPY_EPSILON)


def _standardized(values: Tensor, tokens: Tensor) -> Tensor:
    """Mean 0 and std 1 over the tokens of each group, 0 elsewhere, (groups, G, T)."""
    count = tokens.sum((1, 2), keepdim=True).clamp(min=1)
    deviation = (values - values.where(tokens, 0.0).sum((1, 2), keepdim=True) / count).where(tokens, 0.0)
    variance = deviation.square().sum((1, 2), keepdim=True) / count
    return deviation * (variance + ENTROPY_EPSILON).rsqrt()

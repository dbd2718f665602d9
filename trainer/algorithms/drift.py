"""What updates do to the policy beside what they are for: pure functions; none waits for the device."""

from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

QUARTERS = (0.25, 0.5, 0.75)


def probability_bins(
    probs: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], edges: tuple[float, ...] = QUARTERS
) -> Bool[Tensor, "B T bins"]:
    """Which of the bins that ``edges`` cut [0, 1] into each token that counts is in; a bin holds its lower edge.

    No index is made of it: a device would have to be waited for to count it.
    """
    counted = mask.bool()
    reached = [counted, *(counted & (probs >= edge) for edge in edges), torch.zeros_like(counted)]
    return torch.stack([low & ~high for low, high in pairwise(reached)], dim=-1)


def probability_changes(
    old_logps: Float[Tensor, "B T"],
    logps: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    edges: tuple[float, ...] = QUARTERS,
) -> tuple[Float[Tensor, "bins"], Int[Tensor, "bins"]]:
    """``Σ (π − π_old)`` over the tokens of each bin of π_old, and how many there are.

    Which tokens an update makes likelier: those that the policy was sure of have no room above, and rare ones move
    with the others through the softmax, whatever their own advantage (arXiv 2505.12929 explains its two remedies by
    such interference). In units of probability.
    """
    old = old_logps.exp()
    bins = probability_bins(old, mask, edges)
    return torch.where(bins, (logps.exp() - old).unsqueeze(-1), 0.0).sum((0, 1)), bins.sum((0, 1))


def divergences(logps: Float[Tensor, "B T"], ref_logps: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """``π_ref/π − log(π_ref/π) − 1`` of each token, in nats: its mean over samples of π is KL(π ‖ π_ref).

    Unbiased and never negative (k3 of J. Schulman, "Approximating KL divergence", 2020; TRL's ``kl`` without bias
    correction). Tokens sampled from an older policy bias it, as they do TRL's, and where the policy has moved far its
    tail is heavy: one token that π makes rare and π_ref does not can outweigh all others.
    """
    log_ratio = ref_logps - logps
    return log_ratio.exp() - log_ratio - 1


_LARGEST_LOG_WEIGHT = 300.0
"""The sum of squares of so large weights is still finite in float64."""


def weight_sums(log_weights: Float[Tensor, "*rows"], counted: Bool[Tensor, "*rows"]) -> Float[Tensor, "3"]:
    """``(Σ w, Σ w², N)`` in float64 of those that are counted: sums, which may be added over batches and ranks.

    Log-weights beyond ±300 count as that.
    """
    weights = log_weights.detach().double().clamp(-_LARGEST_LOG_WEIGHT, _LARGEST_LOG_WEIGHT).exp() * counted
    return torch.stack((weights.sum(), weights.square().sum(), counted.sum().double()))


def effective_share(total: float, squares: float, count: float) -> float:
    """``(Σ w)² / (N Σ w²)``: the effective sample size of N importance weights, as a share of N.

    1 where all weights are equal, 1/N where one of them is all there is. A weighted mean of N draws has about the
    variance of so many unweighted ones (A. Kong, "A note on importance sampling using standardized weights", TR 348,
    University of Chicago 1992; A. B. Owen, "Monte Carlo theory, methods and examples", section 9.3).
    """
    return total**2 / (count * squares)


def uniform_groups(
    correct: Float[Tensor, "N"], group_size: int
) -> tuple[Bool[Tensor, "groups"], Bool[Tensor, "groups"]]:
    """Groups in which every judged response is right, and in which every one is wrong; without a verdict neither.

    ``correct`` is 1, 0 or NaN = unjudged. Under a 0/1 reward both kinds have no advantage: how far the policy moves on
    them (`divergences`) is a side effect of the other groups' updates, the "learning tax" of arXiv 2604.13088.
    """
    groups = correct.view(-1, group_size)
    judged = ~groups.isnan()
    present = judged.any(1)
    return ((groups == 1) == judged).all(1) & present, ((groups == 0) == judged).all(1) & present

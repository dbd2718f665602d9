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

    ``correct`` is 1, 0 or NaN = unscored. Under a 0/1 reward both kinds have no advantage.
    """
    groups = correct.view(-1, group_size)
    judged = ~groups.isnan()
    present = judged.any(1)
    return ((groups == 1) == judged).all(1) & present, ((groups == 0) == judged).all(1) & present

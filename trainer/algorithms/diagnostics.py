"""Metrics as pure functions. Shapes as in `advantages`; advantages of unscored responses are 0.

None waits for the device. NaN = the batch has nothing to measure (no live group, no shared prefix): it is not logged.
"""

from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def shared_prefix_lengths(
    completion_ids: Int[Tensor, "N T"], mask: Int[Tensor, "N T"], group_size: int
) -> Int[Tensor, "N"]:
    """Length of the prefix that the responses of the row's group share, up to its last token that the loss counts.

    Tokens that a tool inserted into all of them at the same place are in it; a token that the loss counts in only some
    of them ends it.
    """
    ids = completion_ids.unflatten(0, (-1, group_size))
    counted = mask.unflatten(0, (-1, group_size)).bool()
    alike = ((ids == ids[:, :1]) & (counted == counted[:, :1])).all(1).cumprod(1)
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return (alike * counted[:, 0] * places).amax(1).repeat_interleave(group_size)


def probability_bins(probs: Float[Tensor, "B T"], mask: Int[Tensor, "B T"]) -> Bool[Tensor, "B T bins"]:
    """Membership of each counted token in the quarters of [0, 1]; a quarter includes its lower edge.

    Not an index: counting indices would wait for the device.
    """
    counted = mask.bool()
    edges = (counted & (probs >= edge) for edge in (0.25, 0.5, 0.75))
    reached = [counted, *edges, torch.zeros_like(counted)]
    return torch.stack([low & ~high for low, high in pairwise(reached)], dim=-1)


def token_prob_counts(probs: Float[Tensor, "B T"], mask: Int[Tensor, "B T"]) -> Int[Tensor, "bins"]:
    """Number of tokens by the old policy's probability: [0, 0.25), [0.25, 0.5), [0.5, 0.75), [0.75, 1].

    To compare: the shares in arXiv 2505.12929 for Qwen2.5-7B on Knights & Knaves are 19.2 / 10.2 / 10.1 / 60.5 %.
    """
    return probability_bins(probs, mask).sum((0, 1))


def gradient_shares(
    probs: Float[Tensor, "B T"], advantages: Float[Tensor, "B T"], mask: Int[Tensor, "B T"]
) -> Float[Tensor, "bins"]:
    """Size of the update by the probability of its tokens: ``Σ |A_t| (1 − π_t)`` over the tokens of each bin.

    The gradient of ``log π_t`` with respect to the logits has a norm between ``1 − π_t`` and ``√2 (1 − π_t)`` (after
    arXiv 2505.12929), so the bins' shares of their sum show which tokens dominate the update: rare ones, unless weights
    prevent it. ``advantages`` are the loss's, token weights included. Bins as in `token_prob_counts`; not divided by
    their sum, so that the sums of several ranks can be added.
    """
    sizes = advantages.abs() * (1 - probs)
    return torch.where(probability_bins(probs, mask), sizes.unsqueeze(-1), 0.0).sum((0, 1))


def group_composition(correct: Float[Tensor, "N"], group_size: int) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Shares of groups in which every scored response is right, and in which every one is wrong.

    ``correct`` is 1, 0 or NaN = unscored. A group without a scored response is neither. Both kinds teach nothing under
    a 0/1 reward: rising shares say that the problems have become too easy, or are too hard.
    """
    groups = correct.view(-1, group_size)
    scored = ~groups.isnan()
    right, wrong = (((groups == verdict) == scored).all(1) & scored.any(1) for verdict in (1, 0))
    return right.float().mean(), wrong.float().mean()

"""Token weights from the entropy of the sampling policy at each position."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import NotNegative, PositiveShare, Share, traits

INDEX_EPSILON = 1e-6
"""Keeps surprisal / H finite where the policy is certain, in nats."""


def top_entropy(
    entropies: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    share: PositiveShare = 0.2,
    within: Literal["forward", "response"] = "forward",
    others: Share = 0.0,
) -> Float[Tensor, "B T"]:
    """The 80/20 rule: only the tokens at which the policy was most undecided are trained.

    ``w = 1`` where ``H ≥ quantile_{1 − share}(H)``, else ``others``. The quantile is over the tokens that count of the
    batch handed in, a micro-batch on one rank in training (``within="forward"``, so it depends on how the rollout batch
    is cut), or of each response alone (``within="response"``, which does not). Ties at the quantile are all trained.

    Source: arXiv 2506.01939 (share 0.2, others 0, quantile over the batch).
    Evidence: equal to TRL 1.16's `get_high_entropy_mask` on one process; the paper's rule read in reviews of it.
    Limits: TRL's own setting takes the micro-batches of all ranks together and the current policy's entropy; a weight
    takes one rank's and π_old's. ``within="response"`` and ``others > 0`` are not in the paper.
    """
    counted = entropies.float().masked_fill(~mask.bool(), torch.nan)
    rows = counted if within == "response" else counted.view(1, -1)
    threshold = torch.nanquantile(rows, 1.0 - share, dim=1, keepdim=True)
    top = rows >= threshold  # NaN, where nothing counts, is never above
    return torch.where(top.view(entropies.shape), 1.0, others)


@traits(depends_on_the_cut=True)
def stapo(
    probs: Float[Tensor, "B T"],
    entropies: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    max_prob: Share = 0.002,
    quantile: Share = 0.75,
    renormalize: bool = True,
) -> Float[Tensor, "B T"]:
    """STAPO: improbable tokens of good answers at which the policy was sure of something else are silenced.

    ``w = 0`` where ``A > 0``, ``π_old < max_prob`` and ``H < τ``, else 1. τ is the ``quantile`` of H over those tokens
    with A > 0 and π_old < max_prob of the batch handed in (a micro-batch in training). Such "spurious" tokens have the
    largest gradients and no part in the answer being right; about 0.01 % of all. ``renormalize`` divides the weights by
    their mean, so that the loss averages over the tokens that are left, as published.

    Source: arXiv 2602.15620 (S2T mask and objective; max_prob .002, quantile .75 in its fourth version).
    Evidence: the paper's text read in a stored copy; by hand. No code was found.
    Limits: the first version took the 80th percentile of all tokens' entropies for τ. A batch with one such token has
    H = τ there, and silences none.
    """
    improbable = mask.bool() & (advantages > 0) & (probs < max_prob)
    threshold = torch.nanquantile(entropies.float().masked_fill(~improbable, torch.nan), quantile)
    # none, where no token is improbable: τ is NaN
    spurious = improbable & (entropies < threshold)
    weights = (~spurious).to(probs.dtype)
    left = (weights * mask).sum()
    return torch.where(left > 0, weights * (mask.sum() / left), weights) if renormalize else weights


def relative_surprisal(
    old_logps: Float[Tensor, "B T"], entropies: Float[Tensor, "B T"], *, lower: NotNegative = 0.1, upper: float = 3.0
) -> Float[Tensor, "B T"]:
    """RSI-S: tokens that are neither redundant nor from the tail are trained, by surprisal over entropy.

    ``w = 1`` where ``lower ≤ −log π_old / H ≤ upper``, else 0; H + 1e-6 stands for H. The ratio is 1 for a token as
    surprising as the policy expected there.

    Source: RSI Selection (arXiv 2606.31575).
    Evidence: by formula: the paper's abstract, and three third-party implementations that agree on ratio and interval.
    Limits: neither the paper's text nor code of its authors was found. The bounds are those of one of the three, which
        cites the paper; the tests of another use .5 and 2.

    Raises:
        ValueError: bounds that no token is between.
    """
    if lower >= upper:
        raise ValueError(f"lower = {lower} and upper = {upper} leave no token. Write lower < upper, say 0.1 and 3.0.")
    index = -old_logps / (entropies + INDEX_EPSILON)
    return ((index >= lower) & (index <= upper)).to(old_logps.dtype)

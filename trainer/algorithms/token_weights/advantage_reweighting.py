"""Advantage Reweighting (AR), arXiv 2505.12929."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor


def adv_reweight(
    probs: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    alpha: float = 0.2,
    normalize: Literal["mean"] | None = None,
) -> Float[Tensor, "B T"]:
    """Advantage Reweighting (AR): ``w_{i,t} = α π_old(i,t) + (1 − α)``, for both signs of the advantage.

    Low-probability tokens have the largest gradients (``‖∂(−log π)/∂logits‖₂ ≤ √2 (1 − π)``) and drown the others; AR
    damps them. α in [0, 1]; α = 0 is the baseline, bit for bit. The paper uses 0.2–0.3 for Knights & Knaves and 0.1
    for mathematics.

    ``normalize="mean"`` divides by the mean weight over the tokens that count in the batch handed in (a micro-batch in
    training), so that a run differs from its baseline by the *shape* of the weights alone; not in the paper.

    Source: arXiv 2505.12929, Eq. 4.
    Evidence: equal to the update of the authors' own code to 1.6e-6, alone and with Lopti.

    Raises:
        ValueError: α outside [0, 1], where weights could be negative.
    """
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(
            f"adv_reweight: alpha = {alpha}, but outside [0, 1] a weight α·π + (1 − α) can be negative and turn "
            "the clip to the wrong side. Write 0 ≤ alpha ≤ 1; the paper uses 0.1 to 0.3."
        )
    weights = alpha * probs + (1.0 - alpha)
    if normalize == "mean":
        mean = (weights * mask).sum() / mask.sum()
        weights = torch.where(mean > 0, weights / mean, weights)  # no token counts, or all weigh 0: nothing to divide
    return weights

"""Tapered Off-Policy REINFORCE (TOPR), arXiv 2503.14286."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.coefficients.importance_ratios import importance_ratio
from evenkeel.trainer.algorithms.sequence_weights import trajectory_ratios


def topr(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    ratio: Literal["product", "geometric", "token"] = "product",
) -> Float[Tensor, "B T"]:
    """TOPR: right answers weigh 1, wrong ones their importance ratio tapered to [0, 1].

    ``c = 1`` where A ≥ 0, else ``min(w, 1)``; (B, T) in [0, 1]. A wrong answer that the policy has already left weighs
    less and less, so it is not pushed toward probability 0 forever; a right one keeps its full weight.

    ``ratio="product"`` is the paper's ``w = Π_t ρ_t``; ``"geometric"`` its length-normalized form; ``"token"`` takes
    each token's own ρ, as several public implementations do.

    It is meant for the reward itself, R = +1 right and −1 wrong, without a baseline: an advantage estimator that
    trains groups of equal rewards. With a group baseline it tapers by the sign of A, which is no longer "wrong".

    Source: arXiv 2503.14286, Eq. 8 (a⁻ = 0, all other limits 1).
    Evidence: equal to `topr_policy_loss.py` of Trinity-RFT (token form), run on seeded inputs; the product form by hand
    from the paper's equation, read in excerpt.
    Limits: the paper divides each trajectory's loss by its length, here all tokens share one denominator. The taper
    cuts rounding noise on one side: .01 a token in log ρ (assumed for bfloat16) makes the product form .95 of what it
    is over 1,000 tokens and .88 over 8,000, the other two .998 or more (docs/devices.md).
    """
    weights = importance_ratio(log_ratio) if ratio == "token" else trajectory_ratios(log_ratio, mask, ratio)[:, None]
    return torch.where(advantages < 0, weights.clamp(max=1.0), 1.0)

"""Token weights linear in π_old, of both signs: Advantage Reweighting damps rare tokens, its rival lifts them."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import NotNegative, Share


def adv_reweight(
    probs: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    alpha: Share = 0.2,
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
    """
    return _normalized(alpha * probs + (1.0 - alpha), mask, normalize)


def low_probability_reweight(
    probs: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    alpha: NotNegative = 0.2,
    normalize: Literal["mean"] | None = None,
) -> Float[Tensor, "B T"]:
    """The opposite of AR: ``w_{i,t} = 1 + α (1 − π_old(i,t))``, for both signs of the advantage.

    Training changes few tokens, and those (of large ``Δ log p`` between the base and the trained policy) are rare ones;
    so they get more weight. α ≥ 0; α = 0 is the baseline, bit for bit. The authors' scripts write 0.2 for
    Qwen2.5-Math-7B and 0.1 for Qwen3-8B-Base. ``normalize`` is as in `adv_reweight`.

    Source: arXiv 2603.22117 (Beyond Magnitude, ICLR 2026), training-time reweighting.
    Evidence: by hand; formula, scale and α read in the authors' code (Hesse73/RLVR-Directions, ``reshape_reversed``).
    """
    return _normalized(1.0 + alpha * (1.0 - probs), mask, normalize)


def probability_window(probs: Float[Tensor, "B T"], *, low: Share = 0.0, high: Share = 1.0) -> Float[Tensor, "B T"]:
    """Only tokens of some probabilities are trained: ``w = 1`` where ``low ≤ π_old < high``, else 0.

    ``high = 1`` has no upper bound, so that windows which meet share no token and leave none out.

    Source: arXiv 2505.12929, Fig. 1 (quarters of π_old) and the ablation that trains probable tokens alone.
    Evidence: by hand; nothing published was run.

    Raises:
        ValueError: bounds that no token is between.
    """
    if low >= high:
        what = f"low = {low} and high = {high} leave no token."
        raise ValueError(f"{what} Write low < high, say 0.0 and 0.5.")
    return ((probs >= low) & ((probs < high) | (high == 1))).to(probs.dtype)


def _normalized(weights: Tensor, mask: Tensor, normalize: Literal["mean"] | None) -> Tensor:
    """``weights`` over their mean where the mask counts, or as they are."""
    if normalize is None:
        return weights
    mean = (weights * mask).sum() / mask.sum()
    # no token counts, or all weigh 0: nothing to divide
    return torch.where(mean > 0, weights / mean, weights)

"""Divergence Proximal Policy Optimization (DPPO), arXiv 2602.04879."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.coefficients.importance_ratios import symmetric_clip
from evenkeel.trainer.algorithms.contract import AtLeastOne, Positive

LOG_EPSILON = 1e-8
"""Added inside the logarithms of 1 − π, as the authors do."""


def dppo(
    logps: Float[Tensor, "B T"],
    old_logps: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    divergence: Literal["tv", "kl"] = "tv",
    delta_low: Positive = 0.2,
    delta_high: Positive = 0.2,
    cap: AtLeastOne = 5.0,
) -> Float[Tensor, "B T"]:
    """DPPO: the importance ratio, 0 once the token's probability has moved too far the way the advantage pushes it.

    ``c = min(ρ, cap)``, but 0 where A > 0 and the policy is past δ_high above π_old, or A ≤ 0 and past δ_low below it;
    (B, T) in [0, cap]. How far is the divergence of "this token or another one" under the two policies:

    - ``tv``: ``|π − π_old|``;
    - ``kl``: ``π_old log(π_old/π) + (1 − π_old) log((1 − π_old)/(1 − π))``.

    PPO's ratio stops rare tokens after a tiny absolute change and lets probable ones move far; this does not. The
    paper's δ is 0.2 for tv (0.15 with LoRA) and 0.05 for kl.

    Source: arXiv 2602.04879, Eq. 13 (tv), 14 (kl) and App. E (mask, δ, C = 5).
    Evidence: equal to `compute_policy_loss_with_mask` of sail-sg/Stable-RL (`dppo_binary_tv_recompute`,
    `dppo_binary_kl_recompute`), run on seeded inputs, gradient by token; the paper's text read.
    Limits: the trust region is around the trainer's own π_old. The paper puts it around the inference engine's
    probabilities and found the recomputed ones, as here, less stable where the two differ; it also found the cap
    harmful without the mask. The top-K divergences need the whole distribution and are not offered.
    """
    probs, old_probs = logps.exp(), old_logps.exp()
    if divergence == "tv":
        moved = (probs - old_probs).abs()
    else:
        others = torch.log((1 - old_probs + LOG_EPSILON) / (1 - probs + LOG_EPSILON))
        moved = old_probs * (old_logps - logps) + (1 - old_probs) * others
    too_high = (probs > old_probs) & (moved > delta_high)
    too_low = (probs < old_probs) & (moved > delta_low)
    ratio = symmetric_clip(logps - old_logps, cap=cap)
    return ratio.masked_fill(torch.where(advantages > 0, too_high, too_low), 0.0)

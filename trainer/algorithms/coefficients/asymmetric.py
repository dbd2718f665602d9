"""Asymmetric Importance Sampling Policy Optimization (ASPO), arXiv 2510.06062."""

import torch
from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.coefficients.importance_ratios import importance_ratio


def aspo(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    epsilon_low: float = 0.2,
    epsilon_high: float = 0.2,
    cap: float = 3.0,
) -> Float[Tensor, "B T"]:
    """ASPO: tokens of good answers weigh the inverse of their importance ratio, those of bad ones the ratio itself.

    - A ≥ 0: ``c = min(1/ρ, cap)``, and 0 where ``ρ > 1 + epsilon_high``;
    - A < 0: ``c = min(ρ, cap)``, and 0 where ``ρ < 1 − epsilon_low``.

    (B, T) in [0, cap]. A good token that the policy has made rarer is pushed harder, where PPO's ratio would push it
    less. Past the cap the gradient is kept, capped (a soft dual clip); beyond ε it is dropped (PPO's clip).

    Source: arXiv 2510.06062; the authors' code (the equation was not read in the paper).
    Evidence: equal to `compute_policy_loss_archer` of wizard-III/Archer2.0, run on seeded inputs, gradient by token.
    Limits: the authors' script widens ε to 0.4 for the fifth of a response's tokens with the highest entropy; here all
    tokens have one range. (Its mask named `high_entropy_mask` holds the *low*-entropy tokens, so its branches are
    the right way round.)

    Raises:
        ValueError: ε outside (0, 1) below or not positive above, or cap ≤ 1.
    """
    if not 0.0 < epsilon_low < 1.0 or epsilon_high <= 0.0:
        raise ValueError(
            f"aspo: epsilon_low = {epsilon_low}, epsilon_high = {epsilon_high}, but the clip range from 1 − ε_low to "
            "1 + ε_high must hold ratios below and above 1. Write 0 < epsilon_low < 1 and epsilon_high > 0; "
            "published: 0.2 for both."
        )
    if cap <= 1.0:
        raise ValueError(f"aspo: cap = {cap} would cap on-policy tokens, whose coefficient is 1. Write cap > 1, say 3.")
    ratio, inverse = importance_ratio(log_ratio), importance_ratio(-log_ratio)
    good = inverse.clamp(max=cap).masked_fill(ratio > 1 + epsilon_high, 0.0)
    bad = ratio.clamp(max=cap).masked_fill(ratio < 1 - epsilon_low, 0.0)
    return torch.where(advantages < 0, bad, good)

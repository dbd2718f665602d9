"""Asymmetric Importance Sampling Policy Optimization (ASPO), arXiv 2510.06062."""

import torch
from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.coefficients.importance_ratios import importance_ratio
from evenkeel.trainer.algorithms.contract import AboveOne, OpenShare, Positive


def aspo(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    epsilon_low: OpenShare = 0.2,
    epsilon_high: Positive = 0.2,
    cap: AboveOne = 3.0,
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
    """
    ratio, inverse = importance_ratio(log_ratio), importance_ratio(-log_ratio)
    good = inverse.clamp(max=cap).masked_fill(ratio > 1 + epsilon_high, 0.0)
    bad = ratio.clamp(max=cap).masked_fill(ratio < 1 - epsilon_low, 0.0)
    return torch.where(advantages < 0, bad, good)

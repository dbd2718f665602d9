"""Losses that fade a token or a trajectory out smoothly instead of clipping it, as coefficients."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.coefficients.importance_ratios import importance_ratio
from evenkeel.trainer.algorithms.contract import Positive, traits
from evenkeel.trainer.algorithms.sequence_weights import LOG_RATIO_BOUND

MIN_LOG_TRAJECTORY_RATIO = -18.420680743952367
"""log 1e-8, below which VESPO's authors (and TRL) hold a trajectory's log ratio."""


def sapo(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    *,
    temperature_pos: Positive = 1.0,
    temperature_neg: Positive = 1.05,
) -> Float[Tensor, "B T"]:
    """SAPO: a token fades out as its importance ratio leaves 1, sooner for negative advantages.

    The objective is ``(4/τ) σ(τ (ρ − 1)) A``, whose gradient is ``c · A ∇log π`` with ``c = 4 ρ σ (1 − σ)``,
    σ = σ(τ (ρ − 1)), τ = ``temperature_pos`` where A > 0, else ``temperature_neg``. (B, T) ≥ 0, 1 on-policy.

    Source: arXiv 2511.20347.
    Evidence: equal to TRL 1.16's ``loss_type: sapo`` on a real model, token by token, and to `compute_policy_loss_sapo`
    of volcengine/verl, run on seeded inputs.
    Limits: SAPO averages each response over its own length; here all tokens share one denominator. For the published
    denominator write ``loss_type: sapo`` and no coefficient.
    """
    ratio = importance_ratio(log_ratio)
    gate = torch.sigmoid(torch.where(advantages > 0, temperature_pos, temperature_neg) * (ratio - 1))
    return 4 * ratio * gate * (1 - gate)


@traits(needs_sequence_advantages=True)
def vespo(
    log_ratio: Float[Tensor, "B T"],
    advantages: Float[Tensor, "B T"],
    mask: Int[Tensor, "B T"],
    *,
    k_pos: Positive = 2.0,
    lambda_pos: Positive = 3.0,
    k_neg: Positive = 3.0,
    lambda_neg: Positive = 2.0,
) -> Float[Tensor, "B 1"]:
    """VESPO: a trajectory fades out as its importance ratio leaves 1 on either side, by a gamma-shaped kernel.

    ``c_i = e^λ W_i^k e^{−λ W_i}``, ``W_i = Π_t ρ_{i,t}`` over tokens that count, (k, λ) by the sign of the advantage;
    (B, 1) ≥ 0, 1 on-policy. It peaks at W = k/λ. log W is held within [log 1e-8, 20], where c is 0 to float32.

    Source: arXiv 2602.10693; the authors' code.
    Evidence: equal to TRL 1.16's ``loss_type: vespo`` on a real model, token by token, and to
    `compute_policy_loss_vespo` of FloyedShen/VESPO, run on seeded inputs.
    Limits: tokens that a group shares do not cancel under it: W differs by trajectory and c by sign. Noise of .01 a
    token in log ρ (assumed for bfloat16) makes it .94 of what it is over 1,000 tokens and .65 over 8,000
    (docs/devices.md).
    """
    token_logs = log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    logs = torch.where(mask.bool(), token_logs, 0.0).sum(1, keepdim=True)
    logs = logs.clamp(MIN_LOG_TRAJECTORY_RATIO, LOG_RATIO_BOUND)
    good = advantages[:, :1] >= 0
    k, lam = torch.where(good, k_pos, k_neg), torch.where(good, lambda_pos, lambda_neg)
    return torch.exp(lam + k * logs - lam * logs.exp())

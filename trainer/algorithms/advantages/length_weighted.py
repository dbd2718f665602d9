"""Group advantages weighted by the length of the response."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import traits
from evenkeel.trainer.algorithms.groups import finished, group_count


def lambda_grpo(
    rewards: Float[Tensor, "N"],
    group_size: int,
    lengths: Int[Tensor, "N"],
    *,
    exponent: float = 1.0,
    spread: float = 1 / 9,
) -> Float[Tensor, "N"]:
    """GRPO with a preference for long or short responses, at a fixed exponent.

    ``A_i = f_i · grpo_i``, ``f_i = n · softmax_i(h_i^λ)``, ``h_i = 1 + r z_i``, z the lengths of the n scored responses
    of the group standardized (ddof = 1; 0 where all are equal), λ = ``exponent``, r = ``spread``. λ > 0 prefers long
    responses, λ < 0 short ones; λ = 0 is `grpo`.

    Raises:
        ValueError: a group so large that h can reach 0: ``spread · (G−1)/√G ≥ 1``.

    Source: λ-GRPO (arXiv 2510.06870), r = 1/9.
    Evidence: the definitions of z, h and the softmax read in summaries of the paper; its body was not at hand.
    Limits: the paper learns λ with the policy and so publishes no fixed one; 1 is where the preference is h itself.
    """
    if spread * (group_size - 1) >= group_size**0.5:
        raise ValueError(
            f"lambda_grpo: spread = {spread:g} is too large for groups of {group_size}. Write less than "
            f"{group_size**0.5 / (group_size - 1):.2g}."
        )
    scored = ~rewards.isnan()
    known = lengths.double().masked_fill(~scored, torch.nan).view(-1, group_size)
    count = group_count(scored, group_size).view(-1, group_size)
    deviation = known - known.nanmean(1, keepdim=True)
    variance = deviation.square().nansum(1, keepdim=True) / (count - 1).clamp(min=1)
    standardized = deviation / variance.sqrt().where(variance > 0, 1.0)
    preference = (1 + spread * standardized).pow(exponent)
    preference = preference.masked_fill(~scored.view(-1, group_size), -torch.inf)
    weights = count * preference.softmax(1)
    return finished(grpo(rewards, group_size) * weights.view(-1).to(rewards.dtype), rewards, group_size)


@traits(depends_on_other_groups=True)
def vl_norm(
    rewards: Float[Tensor, "N"], group_size: int, lengths: Int[Tensor, "N"], *, alpha: float = 1.0
) -> Float[Tensor, "N"]:
    """GRPO with long responses weighted down so that the sum over tokens has the least variance.

    ``A_i = grpo_i · L_i^{−α} / mean_j L_j^{−α}``, the mean over all scored responses of the batch that have a token.
    α = 1 is the minimum of variance; the authors use 0.75 on mathematics, so that long responses count more.

    Source: VL Norm, first named ΔL normalization (arXiv 2509.07558).
    Evidence: golden table from running the authors' ``compute_grpo_outcome_advantage`` (``use_grpopp``).
    Limits: published for a loss that sums tokens over one constant denominator: ``loss_type: dr_grpo``. Under a loss
        with 1/L of its own (``grpo``) lengths are divided out twice.
    """
    counted = ~rewards.isnan() & (lengths > 0)
    inverse = lengths.clamp(min=1).double().pow(-alpha).where(counted, 0.0)
    mean = inverse.sum() / counted.sum().clamp(min=1)
    weights = (inverse / mean.where(mean > 0, 1.0)).to(rewards.dtype)
    return finished(grpo(rewards, group_size) * weights, rewards, group_size)

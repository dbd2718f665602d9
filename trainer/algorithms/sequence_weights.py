"""Weights of trajectories: in the configured loss, by importance ratio, and transforms of a group's weights after which
tokens that the group shares cancel.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PER_SEQUENCE_MEAN = frozenset({"grpo", "sapo"})
"""TRL loss types that average over a response's tokens: k_i = 1 / L_i."""
ONE_DENOMINATOR = frozenset({"dapo", "dr_grpo", "cispo", "luspo"})
"""TRL loss types with one denominator for all responses of an update: k_i constant."""
# bnpo's denominator is the token count of a micro-batch, unknown when advantages are computed; vespo's weight depends
# on the advantage's own sign. For neither does a k exist beforehand.


def loss_sequence_weights(
    loss_type: str, lengths: Int[Tensor, "N"], sequence_ratio: Float[Tensor, "N"] | None = None
) -> Float[Tensor, "N"]:
    """The weight ``k_i`` (N,) ≥ 0 of every token of response i in a TRL loss, up to a constant factor.

    ``1/L_i`` for the losses that average per sequence (grpo, sapo), 1 for those with one denominator (dapo, dr_grpo,
    cispo, luspo); times ``sequence_ratio`` where a sequence-level importance ratio is known when the batch is sampled
    (vLLM's correction). A response without tokens weighs 0.

    Raises:
        ValueError: a loss type for which no such weight exists before the update (bnpo, vespo, unknown ones).
    """
    present = (lengths > 0).float()
    if loss_type in PER_SEQUENCE_MEAN:
        weights = present / lengths.clamp(min=1)
    elif loss_type in ONE_DENOMINATOR:
        weights = present
    else:
        known = ", ".join(sorted(PER_SEQUENCE_MEAN | ONE_DENOMINATOR))
        raise ValueError(f"loss_type {loss_type!r} has no trajectory weight before the update. Use one of {known}.")
    return weights if sequence_ratio is None else weights * sequence_ratio


RatioForm = Literal["product", "geometric"]
"""``product``: Π_t ρ_t, the ratio itself. ``geometric``: its 1/L-th power, as GSPO has it."""

LOG_RATIO_BOUND = 20.0
"""A trajectory's log ratio is held within ± this, e^20 = 4.9e8: beyond it float32 sums of ratios lose all other rows.
The same bound as in verl's and VESPO's published losses."""


def trajectory_ratios(
    log_ratio: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], form: RatioForm = "product"
) -> Float[Tensor, "B"]:
    """``w_i = Π_t ρ_{i,t}`` (product) or its geometric mean ``exp((1/L_i) Σ_t log ρ_{i,t})``, over tokens that count.

    (B,) > 0. A trajectory without a token that counts has w = 1. Σ log ρ is held within ± `LOG_RATIO_BOUND`.

    Source: arXiv 2604.13088 v1 (product; ``s_i = Π_t r_{i,t}``); arXiv 2507.18071 (geometric mean, GSPO).
    """
    logs = torch.where(mask.bool(), log_ratio, 0.0).double().sum(1)
    if form == "geometric":
        logs = logs / mask.sum(1).clamp(min=1)
    return logs.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp().to(log_ratio.dtype)


def min_replace(
    weights: Float[Tensor, "B"], advantages: Float[Tensor, "B"], groups: Int[Tensor, "B"], counted: Bool[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """The smallest weight of the group for all of it: ``w̃_i = min_{j in group} w_j``.

    With ``Σ_i A_i = 0`` over the group follows ``Σ_i w̃_i A_i = 0``. Rows that are not ``counted`` (not scored,
    or no loss counts a token of theirs) neither set the minimum nor receive it: w̃ = w. Likewise a group whose
    advantages are all 0. ``groups`` holds one number per row, in any order.

    Source: arXiv 2604.13088 v1, Eq. 17.
    """
    # (B, B): the counted rows of the row's group
    others = (groups[:, None] == groups) & counted
    smallest = torch.where(others, weights, torch.inf).amin(1)
    is_live = (others & (advantages != 0)).any(1)
    return torch.where(counted & is_live, smallest, weights)


def adv_orthogonal(
    weights: Float[Tensor, "B"], advantages: Float[Tensor, "B"], groups: Int[Tensor, "B"], counted: Bool[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """The group's weights without their component along its advantages: ``w̃ = w − (Aᵀw / ‖A‖²) A``.

    ``Σ_i w̃_i A_i = 0`` always; ``Σ_i w̃_i = Σ_i w_i`` where ``Σ_i A_i = 0``. A w̃ can be negative, then the trajectory
    is trained the other way: clamping it at 0 would give up the cancellation. Rows that are not ``counted`` and groups
    whose advantages are all 0 keep w̃ = w. Worked in float64, since weights of a group can span many orders.

    Source: arXiv 2604.13088 v1, Eq. 18.
    """
    same = groups[:, None] == groups
    signal, exact = (advantages * counted).double(), weights.double()
    # sums over (B, B), not scatter_add, whose order of summation a GPU leaves open
    along, norm = (torch.where(same, values, 0.0).sum(1) for values in (signal * exact, signal**2))
    return (exact - torch.where(norm > 0, along / norm, 0.0) * signal).to(weights.dtype)

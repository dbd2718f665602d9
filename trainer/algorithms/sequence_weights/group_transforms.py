"""Transforms of a group's trajectory weights after which tokens that the group shares cancel; detached."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def min_replace(
    weights: Float[Tensor, "B"],
    advantages: Float[Tensor, "B"],
    groups: Int[Tensor, "B"],
    counted: Bool[Tensor, "B"],
) -> Float[Tensor, "B"]:
    """The smallest weight of the group for all of it: ``w̃_i = min_{j in group} w_j``.

    With ``Σ_i A_i = 0`` over the group follows ``Σ_i w̃_i A_i = 0``. Rows that are not ``counted`` (nobody judged them,
    or no loss counts a token of theirs) neither set the minimum nor receive it: w̃ = w. Likewise a group whose
    advantages are all 0. ``groups`` holds one number per row, in any order.

    Source: arXiv 2604.13088 v1, Eq. 17.
    """
    group = groups.unique(return_inverse=True)[1]
    in_live_group, empty = _in_live_group(advantages, group, counted), weights.new_full((len(weights),), torch.inf)
    smallest = empty.scatter_reduce(0, group, weights.masked_fill(~counted, torch.inf), "amin")[group]
    return torch.where(in_live_group, smallest, weights)


def adv_orthogonal(
    weights: Float[Tensor, "B"],
    advantages: Float[Tensor, "B"],
    groups: Int[Tensor, "B"],
    counted: Bool[Tensor, "B"],
) -> Float[Tensor, "B"]:
    """The group's weights without their component along its advantages: ``w̃ = w − (Aᵀw / ‖A‖²) A``.

    ``Σ_i w̃_i A_i = 0`` always; ``Σ_i w̃_i = Σ_i w_i`` where ``Σ_i A_i = 0``. A w̃ can be negative, then the trajectory
    is trained the other way: clamping it at 0 would give up the cancellation. Rows that are not ``counted`` and groups
    whose advantages are all 0 keep w̃ = w. Worked in float64, since weights of a group can span many orders.

    Source: arXiv 2604.13088 v1, Eq. 18.
    """
    group = groups.unique(return_inverse=True)[1]
    signal, exact = (advantages * counted).double(), weights.double()
    zeros = torch.zeros_like(signal)
    along = zeros.scatter_add(0, group, signal * exact)[group]
    norm = zeros.scatter_add(0, group, signal**2)[group]
    return (exact - torch.where(norm > 0, along / norm, 0.0) * signal).to(weights.dtype)


def _in_live_group(
    advantages: Float[Tensor, "B"], group: Int[Tensor, "B"], counted: Bool[Tensor, "B"]
) -> Bool[Tensor, "B"]:
    """Counted rows of groups in which some counted advantage is not 0."""
    signal = ((advantages != 0) & counted).long()
    return counted & (torch.zeros_like(signal).scatter_add(0, group, signal)[group] > 0)

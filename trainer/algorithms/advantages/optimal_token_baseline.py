"""Optimal Token Baseline (OTB), arXiv 2602.07078."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.groups import finished
from evenkeel.trainer.algorithms.turns import counted_first

ENERGY_EPSILON = 1e-8
"""Keeps the baseline finite where no token so far could have been another one."""


def otb(
    rewards: Float[Tensor, "N"],
    group_size: int,
    mask: Int[Tensor, "N T"],
    old_logps: Float[Tensor, "N T"],
    sum_pi_squared: Float[Tensor, "N T"],
    *,
    zero_tail: bool = False,
) -> Float[Tensor, "N T"]:
    """OTB: at each place the rewards of the group, weighted by how much each response has moved the logits so far.

    ``A_{i,t} = r_i − Σ_j W_{j,t} r_j / Σ_j W_{j,t}`` over the responses that have a t-th token, the realized energy
    ``W_{j,t} = Σ_{s ≤ t} (1 − 2 π_s + Σ_v π_s(v)²)`` being the squared norm of ∂log π/∂logits summed so far. Places
    count the tokens that the loss counts; a response alone at its place gets 0, or with ``zero_tail`` its reward, as
    the authors have it for turns.

    Source: OTB (arXiv 2602.07078), as verl writes it.
    Evidence: golden table from running verl's ``compute_optimal_token_baseline_advantage`` and, with inserted tokens,
        ``compute_multi_turn_optimal_token_baseline_advantage``.
    Limits: verl can also weigh W by the squared importance ratio of the engine's samples; here W has none.
    """
    order = counted_first(mask)
    present = mask.gather(1, order).bool() & ~rewards.isnan()[:, None]
    energy = (1.0 - 2.0 * old_logps.exp() + sum_pi_squared).gather(1, order).masked_fill(~present, 0.0)
    weights = energy.cumsum(1).masked_fill(~present, 0.0).to(rewards.dtype)
    weights = weights.view(-1, group_size, mask.shape[1])
    weighted = (weights * rewards.nan_to_num().view(-1, group_size, 1)).sum(1)
    baseline = (weighted / (weights.sum(1) + ENERGY_EPSILON)).repeat_interleave(group_size, dim=0)
    if zero_tail:
        alone = present.view(-1, group_size, mask.shape[1]).sum(1) == 1
        baseline = baseline.masked_fill(alone.repeat_interleave(group_size, dim=0), 0.0)
    placed = (rewards[:, None] - baseline).masked_fill(~present, 0.0)
    return finished(torch.zeros_like(placed).scatter(1, order, placed), rewards, group_size)

"""Turn-level credit of MT-GRPO: what a turn was paid, beside the outcome."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import NotNegative, traits
from evenkeel.trainer.algorithms.turns import last_turns, of_tokens


@traits(trains_dead_groups=True)
def turn_grpo(
    rewards: Float[Tensor, "N"],
    group_size: int,
    turns: Int[Tensor, "N T"],
    turn_rewards: Float[Tensor, "N K"],
    *,
    turn_weight: NotNegative = 1.0,
) -> Float[Tensor, "N T"]:
    """MT-GRPO: GRPO of the outcome on every turn, plus GRPO of what the turn was paid on all turns but the last.

    ``A_{i,t} = A^O_i + λ A^T_{i,k}`` on the tokens of turn k, ``A^O_i`` on those of the last turn, 0 on inserted ones;
    λ is ``turn_weight``. ``A^O`` is `grpo` of ``r_i`` plus what the last turn was paid, ``A^T_k`` is `grpo` of what
    turn k was paid, over the rows of the group that have it. A response of one turn gets `grpo` of ``r_i + Σ_k
    r_{i,k}``, as GRPO would give it. A group of equal outcomes still teaches where its turns were paid differently;
    where no turn is paid all this is `grpo`.

    Source: turn-level credit assignment (arXiv 2505.11821 v1), the algorithm MT-GRPO.
    Evidence: golden table from running the authors' ``_compute_normalized_advantages`` and ``_assign_advantages``.
    Limits: theirs is for one call of a tool and one answer. Three turns and more, and pay for the last turn, are this
        project's reading: a turn is compared with turns of its number, whatever came before it.
    """
    turn = torch.arange(turn_rewards.shape[1], device=turn_rewards.device)
    last = last_turns(turn_rewards)[:, None]
    ends = (turn == last) & (last > 0)
    paid_last = (turn_rewards.nan_to_num() * ends).sum(1)
    before = turn_rewards.masked_fill(ends | rewards.isnan()[:, None], torch.nan)
    turn_advantages = grpo(before.T.flatten(), group_size).view(before.T.shape).T.nan_to_num()
    outcome = grpo(rewards + paid_last, group_size)
    combined = grpo(rewards + turn_rewards.nansum(1), group_size)
    several = outcome[:, None] + turn_weight * turn_advantages
    return of_tokens(torch.where(last > 0, several, combined[:, None]), turns, rewards)

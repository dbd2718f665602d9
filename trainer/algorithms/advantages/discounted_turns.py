"""Group Turn Policy Optimization: normalized discounted returns of turns."""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import Share, traits
from evenkeel.trainer.algorithms.turns import of_tokens, turn_returns


@traits(trains_dead_groups=True)
def turn_discounted(
    rewards: Float[Tensor, "N"],
    group_size: int,
    turns: Int[Tensor, "N T"],
    turn_rewards: Float[Tensor, "N K"],
    *,
    gamma: Share = 0.9,
    within: Literal["turn", "group"] = "turn",
) -> Float[Tensor, "N T"]:
    """Each turn's discounted return, standardized over the turns of its number in the group.

    ``R_{i,k} = Σ_{l ≥ k} γ^{l−k} r_{i,l}``, the outcome ``r_i`` added to the last turn;
    ``A_{i,t} = (R_{i,k} − mean) / (std + ε)`` on the tokens of turn k, 0 on inserted ones; std with ddof = 1, ε = 1e-4.
    Mean and std are over the rows of the group that have a turn k (``within="turn"``), or over all turns of the group
    (``"group"``). One turn a row: `grpo` of ``r_i + r_{i,0}``. Turns of equal returns get zeros; a group of equal
    outcomes still teaches where turns were paid differently, or where γ < 1 tells quick answers from slow ones.

    Source: GTPO (arXiv 2511.14846): normalized discounted returns of turns as advantages; γ = .9.
    Evidence: by hand. No code was found; of the paper the abstract and digests were read, not the equation.
    Limits: over which turns the paper normalizes is not known, hence ``within``. Its rewards (a format penalty for each
        turn, the shaping of failed answers by the likeness of their code) are the environment's, not this estimator's.
    """
    returns = turn_returns(rewards, turn_rewards, gamma)
    if within == "turn":
        advantages = grpo(returns.T.flatten(), group_size).view(returns.T.shape).T
    else:
        advantages = grpo(returns.flatten(), group_size * returns.shape[1]).view(returns.shape)
    return of_tokens(advantages, turns, rewards)

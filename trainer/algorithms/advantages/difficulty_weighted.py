"""Group advantages weighted by the difficulty of the question."""

from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import NotNegative
from evenkeel.trainer.algorithms.groups import finished, group_count


def grpo_lead(
    rewards: Float[Tensor, "N"],
    group_size: int,
    *,
    least: NotNegative = 0.4,
    greatest: NotNegative = 1.5,
    midpoint: float = 0.75,
    steepness: float = 10.0,
) -> Float[Tensor, "N"]:
    """GRPO in which right answers to hard questions, and wrong ones to easy questions, weigh most.

    ``A_i = grpo_i · w(p)`` where ``grpo_i > 0``, else ``grpo_i · w(1 − p)``; p the share of scored rewards > 0 in the
    group, ``w(x) = least + (greatest − least) / (1 + e^{steepness (x − midpoint)})``.

    Source: GRPO-LEAD (arXiv 2504.09696), the reweighting of advantages.
    Evidence: golden table from running the repository's ``compute_grpo_outcome_advantage``.
    Limits: the paper's length-dependent reward and its penalty for wrong answers are rewards, not here.
    """
    scored = ~rewards.isnan()
    count = group_count(scored, group_size).clamp(min=1)
    pass_rate = (group_count(rewards > 0, group_size) / count).to(rewards.dtype)
    advantages = grpo(rewards, group_size)
    difficulty = pass_rate.where(advantages > 0, 1 - pass_rate)
    weights = least + (greatest - least) * (-steepness * (difficulty - midpoint)).sigmoid()
    return finished(advantages * weights, rewards, group_size)

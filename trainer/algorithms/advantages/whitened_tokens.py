"""REINFORCE++ as its authors, verl and OpenRLHF run it: whitened over the tokens of the batch."""

from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import dr_grpo
from evenkeel.trainer.algorithms.contract import traits
from evenkeel.trainer.algorithms.groups import finished

VARIANCE_EPSILON = 1e-8
"""ε added to the variance over tokens, in squared reward units (verl's value)."""


@traits(trains_dead_groups=True, depends_on_other_groups=True)
def reinforce_pp_original(rewards: Float[Tensor, "N"], lengths: Int[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Rewards whitened over the tokens of the batch, without any group baseline.

    ``A_i = (r_i − m) / √(v + ε)``, m and v (ddof = 1) the mean and variance of the reward over all tokens of scored
    responses: a response counts ``L_i`` times. All rewards equal, or no token at all: advantage 0.

    Source: REINFORCE++ (arXiv 2501.03262), the algorithm without group baseline, at discount 1.
    Evidence: golden table from running verl's ``compute_reinforce_plus_plus_outcome_advantage``.
    Limits: the original subtracts β KL from the reward of each token; here KL belongs to the loss. OpenRLHF divides by
        the variance with ddof = 0. A group of equal rewards is trained: it is compared with the rest of the batch.
    """
    return finished(_whitened_over_tokens(rewards, lengths), rewards, len(rewards))


@traits(depends_on_other_groups=True)
def reinforce_pp_token(rewards: Float[Tensor, "N"], group_size: int, lengths: Int[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Rewards centered inside the group, then whitened over the tokens of the batch.

    ``A'_i = r_i − mean_G r``, ``A_i = (A'_i − m) / √(v + ε)``, m and v (ddof = 1) the mean and variance of A' over all
    tokens of scored responses, dead groups among them: a response counts ``L_i`` times.

    Source: REINFORCE++ (arXiv 2501.03262), the variant with a group baseline.
    Evidence: golden table from running verl's ``compute_reinforce_plus_plus_baseline_outcome_advantage``.
    Limits: verl gives a group of equal rewards ``−m/√(v + ε)``, the same for all its tokens; here it gets 0. m is not
        0 where lengths follow rewards, so that a group's advantages need not sum to 0.
    """
    return finished(_whitened_over_tokens(dr_grpo(rewards, group_size), lengths), rewards, group_size)


def _whitened_over_tokens(values: Tensor, lengths: Tensor) -> Tensor:
    scored = ~values.isnan()
    # bfloat16 cannot count beyond 256
    counts, known = lengths[scored].double(), values[scored].double()
    total = counts.sum()
    mean = (counts * known).sum() / total.clamp(min=1)
    variance = (counts * (known - mean).square()).sum() / (total - 1).clamp(min=1)
    return ((values.double() - mean) * (variance + VARIANCE_EPSILON).rsqrt()).to(values.dtype)

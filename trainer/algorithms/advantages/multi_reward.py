"""Several rewards, each normalized before they are summed."""

import torch
from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import traits
from evenkeel.trainer.algorithms.groups import GROUP_STD_EPSILON


@traits(trains_dead_groups=True, depends_on_other_groups=True)
def gdpo(
    rewards: Float[Tensor, "N"],
    group_size: int,
    rewards_per_function: Float[Tensor, "N F"],
    reward_weights: Float[Tensor, "F"],
) -> Float[Tensor, "N"]:
    """Each reward function standardized in its group, the weighted sum standardized over the batch.

    ``z_{i,f} = (r_{i,f} − mean_G r_f) / (std_G r_f + ε)``, ``s_i = Σ_f w_f z_{i,f}``,
    ``A = (s − mean s) / (std s + ε)``, over what was scored; std with ddof = 1, ε = 1e-4. A function whose rewards are
    all equal in a group gives it 0. ``mean s`` is 0 by construction and is not subtracted again.

    A group whose *summed* rewards are equal is trained where its functions differ; one whose functions are all equal
    gets exact zeros.

    Source: GDPO (arXiv 2601.05242).
    Evidence: formula read in TRL 1.16 (``multi_objective_aggregation: normalize_then_sum``) and in the authors' code.
    Limits: the authors' verl code whitens the sum over tokens, their TRL code and TRL over responses, as here.
    """
    scores = torch.zeros_like(rewards)
    for column, weight in zip(rewards_per_function.unbind(1), reward_weights, strict=True):
        scores = scores + weight * grpo(column, group_size).nan_to_num()
    scored = scores[~rewards.isnan()]
    std = scored.std() if scored.numel() > 1 else rewards.new_tensor(1.0)
    return (scores / (std + GROUP_STD_EPSILON)).masked_fill(rewards.isnan(), torch.nan)

"""Baselines of the group: GRPO and its nearest relatives."""

from jaxtyping import Float
from torch import Tensor

from trainer.algorithms.groups import finished, group_mean, group_scale

WHITENING_EPSILON = 1e-8
"""ε of the global standard deviation of ``reinforce_pp``, in reward units."""


def grpo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Group-normalised rewards: ``A_i = (r_i − mean_G r) / (std_G r + ε)``, std with ddof = 1, ε = 1e-4.

    Source: GRPO, DeepSeekMath (arXiv 2402.03300), §4.1.2.
    """
    return finished((rewards - group_mean(rewards, group_size)) / group_scale(rewards, group_size), rewards, group_size)


def dr_grpo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Group-centred rewards: ``A_i = r_i − mean_G r``.

    Source: Dr. GRPO (arXiv 2503.20783), §3.2: without the std, which favours questions that are too easy or too hard.
    """
    return finished(rewards - group_mean(rewards, group_size), rewards, group_size)


def rloo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Leave-one-out baseline: ``A_i = r_i − mean_{j≠i} r_j``, over the judged members of the group.

    Equal to ``G/(G−1)`` times `dr_grpo`. A response that is alone with its verdict has no baseline: advantage 0.

    Source: RLOO (arXiv 2402.14740), §2.3.
    """
    judged = ~rewards.isnan()
    grouped, group_judged = rewards.nan_to_num().view(-1, group_size), judged.view(-1, group_size)
    others_sum = (grouped.sum(1, keepdim=True) - grouped).view(-1)
    others_count = (group_judged.sum(1, keepdim=True) - group_judged.long()).view(-1)
    return finished(rewards - others_sum / others_count.clamp(min=1), rewards, group_size)


def reinforce_pp(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Group-mean baseline, then whitening over the global batch.

    ``A'_i = r_i − mean_G r``, ``A = (A' − mean A') / (std A' + ε)``.

    ``mean A'`` over the judged rows is 0 by construction and is not subtracted again (its float noise would move dead
    groups); std with ddof = 1 over all judged rows of the batch, ε = 1e-8. One judged row in all: advantage 0.

    Source: REINFORCE++ (arXiv 2501.03262), the variant with a group baseline.
    """
    centred = dr_grpo(rewards, group_size)
    judged = centred[~centred.isnan()]
    std = judged.std() if judged.numel() > 1 else rewards.new_tensor(1.0)
    return centred / (std + WHITENING_EPSILON)

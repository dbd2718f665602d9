"""Baselines of the group: GRPO and its nearest relatives, one advantage per response."""

from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import Positive, traits
from evenkeel.trainer.algorithms.groups import finished, group_mean, group_scale

WHITENING_EPSILON = 1e-8
"""ε of the global standard deviation of ``reinforce_pp``, in reward units."""

MEAN_EPSILON = 1e-6
"""ε of the mean that ``maxrl`` divides by, in reward units."""


def grpo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Rewards standardized inside the group.

    ``A_i = (r_i − mean_G r) / (std_G r + ε)``, std with ddof = 1, ε = 1e-4.

    Source: GRPO, DeepSeekMath (arXiv 2402.03300), §4.1.2.
    Evidence: bitwise equal to TRL's trainer; equal to verl, OpenRLHF and oat up to ε (they use 1e-6, 1e-9).
    """
    centered = rewards - group_mean(rewards, group_size)
    return finished(centered / group_scale(rewards, group_size), rewards, group_size)


def dr_grpo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Rewards centered inside the group, without the std that favors questions too easy or too hard.

    ``A_i = r_i − mean_G r``.

    Source: Dr. GRPO (arXiv 2503.20783), §3.2.
    Evidence: equal to the authors' code (oat).
    Limits: the paper's other half, one constant denominator, is the loss's: TRL's ``loss_type: dr_grpo``.
    """
    return finished(rewards - group_mean(rewards, group_size), rewards, group_size)


def wapo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Winners alone: what a response earned above its group's mean, 0 below it.

    ``A_i = max(r_i − mean_G r, 0)``.

    Source: WAPO (arXiv 2606.16154), as the authors' code has it; a clip above alone, there at a ratio of 10, is TRL's
        ``epsilon_high: 9.0``.
    Evidence: golden table from running the authors' advantages and loss. The paper's text was not found, only its
        abstract: updates on completions of positive advantage alone.
    Limits: the published denominator, all responses times the longest length, is
        ``loss_type: dr_grpo``'s, but for groups without a winner, which the authors do not count.
    """
    return dr_grpo(rewards, group_size).clamp(min=0.0)


def rloo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Each reward against the mean of the others in its group.

    ``A_i = r_i − mean_{j≠i} r_j``, over the scored members: ``G/(G−1)`` times `dr_grpo`. A response that is alone with
    its verdict has no baseline: advantage 0.

    Source: RLOO (arXiv 2402.14740), §2.3.
    Evidence: equal to verl and OpenRLHF.
    """
    scored = ~rewards.isnan()
    grouped, group_scored = rewards.nan_to_num().view(-1, group_size), scored.view(-1, group_size)
    others_sum = (grouped.sum(1, keepdim=True) - grouped).view(-1)
    others_count = (group_scored.sum(1, keepdim=True) - group_scored.long()).view(-1)
    return finished(rewards - others_sum / others_count.clamp(min=1), rewards, group_size)


@traits(depends_on_other_groups=True)
def reinforce_pp(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Rewards centered inside the group, then divided by the std over all responses of the batch.

    ``A'_i = r_i − mean_G r``, ``A = (A' − mean A') / (std A' + ε)``.

    ``mean A'`` over the scored rows is 0 by construction and is not subtracted again (its float noise would move dead
    groups); std with ddof = 1 over all scored rows of the batch, ε = 1e-8. One scored row in all: advantage 0.

    Source: REINFORCE++ (arXiv 2501.03262), the variant with a group baseline.
    Evidence: tested against a second computation; the authors (OpenRLHF) and verl whiten over tokens instead, which
        is `reinforce_pp_token`.
    Limits: whitens over responses, so that a long response counts as much as a short one.
    """
    centered = dr_grpo(rewards, group_size)
    scored = centered[~centered.isnan()]
    std = scored.std() if scored.numel() > 1 else rewards.new_tensor(1.0)
    return centered / (std + WHITENING_EPSILON)


def opo(rewards: Float[Tensor, "N"], group_size: int, lengths: Int[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Rewards against their mean weighted by length, the baseline of least gradient variance.

    ``A_i = r_i − Σ_j L_j r_j / Σ_j L_j`` over the scored members; a group without any token keeps the plain mean.
    It is `exchangeable` at ``k = L`` without the std: ``Σ_i L_i A_i = 0``.

    Source: OPO (arXiv 2505.23585).
    Evidence: golden table from running verl's ``compute_opo_outcome_advantage``.
    Limits: the baseline is optimal where a response's squared gradient norm grows as its length.
    """
    weights = lengths.double().masked_fill(rewards.isnan(), 0.0).view(-1, group_size)
    total = weights.sum(1).repeat_interleave(group_size)
    weighted = (weights * rewards.nan_to_num().view(-1, group_size)).sum(1).repeat_interleave(group_size)
    baseline = (weighted / total.clamp(min=1)).to(rewards.dtype)
    baseline = baseline.where(total > 0, group_mean(rewards, group_size))
    return finished(rewards - baseline, rewards, group_size)


@traits(depends_on_other_groups=True)
def gpg(rewards: Float[Tensor, "N"], group_size: int, *, f_norm: Positive = 1.0) -> Float[Tensor, "N"]:
    """Centered rewards, scaled up by the share of responses that earned nothing.

    ``A_i = α (r_i − mean_G r) / f_norm``, ``α = N / #{i : r_i ≠ 0}`` over the scored rows of the batch (1 where all
    rewards are 0).

    Source: GPG (arXiv 2504.02546), as verl writes it.
    Evidence: golden table from running verl's ``compute_gpg_outcome_advantage``.
    Limits: verl's α counts responses with a reward; the authors' own code divides the loss by the share of groups that
        hold a gradient, and samples again where that share is low.
    """
    scored = rewards[~rewards.isnan()]
    alpha = scored.numel() / max(int(scored.count_nonzero()), 1)
    return dr_grpo(rewards, group_size) * (alpha / f_norm)


def maxrl(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Centered rewards divided by the group's mean: hard questions weigh most.

    ``A_i = (r_i − μ) / (μ + ε)``, μ = mean_G r, ε = 1e-6. At r ∈ {0, 1} the gradient is that of the log-likelihood of
    being right, where `dr_grpo`'s is that of the share of right answers.

    Raises:
        ValueError: a negative reward: μ may vanish or change sign.

    Source: MaxRL (arXiv 2602.02710).
    Evidence: golden table from running the authors' ``compute_maxrl_outcome_advantage``.
    """
    if bool((rewards < 0).any()):
        lowest = rewards.nan_to_num(nan=0.0).min().item()
        raise ValueError(
            f"maxrl divides by a group's mean reward, and a reward is {lowest:g}. Use rewards from 0 on, or dr_grpo."
        )
    mean = group_mean(rewards, group_size)
    return finished((rewards - mean) / (mean + MEAN_EPSILON), rewards, group_size)

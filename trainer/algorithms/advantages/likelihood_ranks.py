"""Rewards reshaped by how likely the policy was to write the response."""

from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.contract import Share, traits


@traits(trains_dead_groups=True)
def unlikeliness(
    rewards: Float[Tensor, "N"],
    group_size: int,
    old_logps: Float[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    *,
    rank_penalty: Share = 0.25,
    length_normalised: bool = False,
) -> Float[Tensor, "N"]:
    """Right answers that the policy finds likely earn less, then grpo.

    ``r'_i = r_i (1 − β rank_i / n)``, rank of ``Σ_t log π_old`` ascending among the n scored responses of the group
    (0 = the rarest), β = ``rank_penalty``; ``A = (r' − mean r') / (std r' + ε)``. Equal likelihoods share their mean
    rank. With ``length_normalised`` the rank is that of the mean log-probability of a token.

    A group of right answers alone is trained: rare ones up, common ones down. One of reward 0 alone is not.

    Source: Rewarding the Unlikely (arXiv 2506.02355), β = 0.25.
    Evidence: golden table from the authors' loop run on seeded inputs; the code ranks by the mean over tokens
        (``length_normalised: true``), the paper speaks of the likelihood of the response.
    Limits: for rewards ≥ 0: a negative reward is raised where it is likely.
    """
    counted = mask.to(old_logps.dtype)
    scores = (old_logps * counted).sum(1)
    if length_normalised:
        scores = scores / counted.sum(1).clamp(min=1)
    scored = ~rewards.isnan().view(-1, group_size)
    grouped = scores.view(-1, group_size)
    below = (grouped[:, None, :] < grouped[:, :, None]) & scored[:, None, :]
    equal = (grouped[:, None, :] == grouped[:, :, None]) & scored[:, None, :]
    rank = below.sum(2) + (equal.sum(2) - 1).clamp(min=0) / 2
    share = rank / scored.sum(1, keepdim=True).clamp(min=1)
    return grpo(rewards * (1 - rank_penalty * share.view(-1).to(rewards.dtype)), group_size)

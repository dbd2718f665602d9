"""Baselines under which tokens that a group shares cancel, arXiv 2604.13088."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import traits
from evenkeel.trainer.algorithms.groups import finished, group_mean, group_scale


@traits(cancels_shared_tokens=True, needs_whole_groups="step")
def exchangeable(
    rewards: Float[Tensor, "N"], group_size: int, sequence_weights: Float[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """The baseline under which tokens that a whole group shares cancel, whatever the loss weights trajectories by.

    ``b = Σ_j k_j r_j / Σ_j k_j``, ``A_i = (r_i − b) / (std_G r + ε)``  ⇒  ``Σ_i k_i A_i = 0`` for any ``k ≥ 0``.

    ``k`` (``sequence_weights``) is what the configured loss multiplies every token of response i by. Where k is
    constant in a group the baseline *is* the group mean, bit for bit. A response of weight 0 (a truncated one that the
    loss masks) has no part in any baseline, but in the std. A group whose weights are all 0 falls back to the mean
    (nothing of it reaches the gradient).

    Source: the condition is arXiv 2604.13088 v1, Eq. 17 and 18; this baseline, its dual, is derived in this project.
    Evidence: derived here; the cancellation is tested as a property.
    """
    baseline = _weighted_baseline(rewards, sequence_weights.to(rewards.dtype), group_size)
    return finished((rewards - baseline) / group_scale(rewards, group_size), rewards, group_size)


@traits(cancels_shared_tokens=True, needs_whole_groups="step", needs_equal_sequence_weights=True)
def exchangeable_prefix_tree(
    rewards: Float[Tensor, "N"],
    group_size: int,
    completion_ids: Int[Tensor, "N T"],
    sequence_weights: Float[Tensor, "N"],
) -> Float[Tensor, "N T"]:
    """Each token against the mean reward of the other responses that share its prefix.

    ``b(h) = mean reward of the other group members whose prefix equals h``, at the deepest ancestor of h that another
    scored member shares; ``A_{i,t} = (r_i − b(h_{i,t})) / (std_G r + ε)``. A state-dependent baseline, hence unbiased
    but for the std. Where two or more members share h and all go on with the same token, their contributions cancel;
    for equal weights only (or 0: such a response has no part in any baseline, but in the std).

    Raises:
        ValueError: positive ``sequence_weights`` that differ in a group.

    Source: the condition is arXiv 2604.13088 v1, Eq. 17 and 18; this baseline is derived in this project.
    Evidence: derived here; tested against the definition read aloud.
    """
    trained = rewards.masked_fill(sequence_weights == 0, torch.nan)
    if not bool(_constant_in_group(sequence_weights, trained, group_size).all()):
        raise ValueError(
            "exchangeable_prefix_tree needs equal sequence_weights in a group. Write loss_type: dapo, dr_grpo or "
            "cispo, or advantage: exchangeable."
        )
    baselines = _prefix_tree_baseline(rewards, trained, completion_ids, group_size)
    scale = group_scale(rewards, group_size)[:, None]
    return finished((rewards[:, None] - baselines) / scale, rewards, group_size)


@traits(cancels_shared_tokens="classes", needs_whole_groups="step")
def exchangeable_token_class(
    rewards: Float[Tensor, "N"],
    group_size: int,
    completion_ids: Int[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    sequence_weights: Float[Tensor, "N"],
    *,
    correlation_threshold: float = 0.2,
) -> Float[Tensor, "N T"]:
    """A baseline of its own for each token id that all responses contain whatever they earn.

    For a token id v that every scored response of weight > 0 contains and whose counts ``n_{v,i}`` have
    ``|corr(n_v, r)| < correlation_threshold``: ``b_v = Σ k_i n_{v,i} r_i / Σ k_i n_{v,i}``; other tokens keep the
    baseline of `exchangeable`; ``A_{i,t} = (r_i − b) / (std_G r + ε)``.

    Source: the condition is arXiv 2604.13088 v1, Eq. 17 and 18; this baseline is derived in this project.
    Evidence: derived here; the cancellation of weak classes is tested as a property.
    Limits: biased: the baseline depends on the action. The places of a weak class cancel in sum, ``Σ_{i,t: o_{i,t}=v}
        k_i A_{i,t} = 0``, and no position of a shared prefix by itself unless its id occurs equally often in all
        responses: with 1 to 5 shared tokens and responses of uneven length .003 to .041 of it is left (`exchangeable`:
        1e-7). Token weights that differ from place to place (AR, Lopti's passes) leave something of the sum too.
    """
    weights = sequence_weights.to(rewards.dtype)
    baselines = _weighted_baseline(rewards, weights, group_size)[:, None].repeat(1, completion_ids.shape[1])
    decides = ~rewards.isnan() & (weights != 0)
    for start in range(0, len(rewards), group_size):
        rows = torch.arange(start, start + group_size, device=rewards.device)
        rows = rows[decides[rows]]
        if len(rows) < 2:
            continue
        classes, class_of_token = completion_ids[rows].unique(return_inverse=True)
        counts = class_of_token.new_zeros(len(rows), len(classes))
        counts = counts.scatter_add(1, class_of_token, mask[rows].long()).to(rewards.dtype)  # n_{v,i}, (rows, V)
        own = rewards[rows, None]
        # a constant count correlates with nothing
        correlation = torch.cosine_similarity(counts - counts.mean(0), own - own.mean(), dim=0)
        weak = (counts > 0).all(0) & (correlation.abs() < correlation_threshold)
        exposure = weights[rows, None] * counts
        of_class = own.max() + (exposure * (own - own.max())).sum(0) / exposure.sum(0)
        baselines[rows] = torch.where(weak[class_of_token], of_class[class_of_token], baselines[rows])
    scale = group_scale(rewards, group_size)[:, None]
    return finished((rewards[:, None] - baselines) / scale, rewards, group_size)


def _constant_in_group(weights: Tensor, rewards: Tensor, group_size: int) -> Tensor:
    """(N,) bool: the scored members of the row's group all have the same weight."""
    scored = ~rewards.isnan()
    highest = weights.where(scored, -torch.inf).view(-1, group_size).amax(1)
    lowest = weights.where(scored, torch.inf).view(-1, group_size).amin(1)
    return (highest <= lowest).repeat_interleave(group_size)


def _weighted_baseline(rewards: Tensor, weights: Tensor, group_size: int) -> Tensor:
    """``Σ k r / Σ k`` over the scored members (N,); the plain mean, bit for bit, where k is constant or all 0.

    Summed as distances from the highest reward of weight > 0, which leaves no float noise where these are all equal.
    """
    constant = _constant_in_group(weights, rewards, group_size)
    weights = weights.where(~rewards.isnan(), 0.0).view(-1, group_size)
    grouped = rewards.nan_to_num().view(-1, group_size)
    highest = grouped.masked_fill(weights == 0, -torch.inf).amax(1, keepdim=True)
    distance = (weights * (grouped - highest)).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    weighted = (highest + distance).view(-1).repeat_interleave(group_size)
    plain = constant | (weights == 0).all(1).repeat_interleave(group_size)
    return torch.where(plain, group_mean(rewards, group_size), weighted)


def _prefix_tree_baseline(rewards: Tensor, trained: Tensor, completion_ids: Tensor, group_size: int) -> Tensor:
    """Mean reward of the other members at the deepest shared ancestor of each prefix, (N, T).

    Members are the rows whose ``trained`` reward is not NaN; a row without another member is its own baseline.

    With ``depth_{ij}`` the length of the common prefix of responses i and j, j shares the prefix of token t iff
    ``depth_{ij} ≥ t``; the deepest ancestor of that prefix with another member has ``min(t, max_j depth_{ij})`` tokens.
    """
    tokens = torch.arange(completion_ids.shape[1], device=completion_ids.device)
    own_row = torch.eye(group_size, dtype=torch.bool, device=completion_ids.device)
    baselines = []
    for start in range(0, len(rewards), group_size):
        group = slice(start, start + group_size)
        own, ids = rewards[group], completion_ids[group]
        # (G, G): row i's other members j
        other = ~trained[group].isnan() & ~own_row
        depth = (ids[:, None] == ids[None]).long().cumprod(-1).sum(-1).masked_fill(~other, -1)
        # (G, T); −1 where there is no other member
        ancestor = tokens.minimum(depth.amax(1, keepdim=True))
        member = (depth[:, :, None] >= ancestor[:, None, :]) & other[:, :, None]  # (G, G, T)
        # r_j − r_i: exactly 0 for equal rewards
        distance = (own[None, :] - own[:, None]).masked_fill(~other, 0.0)
        baselines.append(own[:, None] + (distance[:, :, None] * member).sum(1) / member.sum(1).clamp(min=1))
    return torch.cat(baselines)

"""Advantage estimators: rewards of the whole rollout batch → advantages. One pure function an estimator.

Shapes: N completions on all ranks, G = ``group_size`` responses per prompt (a group's rows are adjacent), T tokens.
Every estimator takes ``rewards`` (N,) float and ``group_size`` and returns (N,), or (N, T) when it credits tokens.

The contract, checked when an estimator is registered:

- NaN in ⇔ NaN out. NaN marks a completion that no reward function could judge; it is left out of every mean and std.
- A group whose judged rewards are all equal (also a group with one judged response) gets exact zeros. Without this the
  float noise of ``r − mean`` over ``std + ε``, under a fresh Adam, moves the weights by a whole learning rate.

The estimators of this file, moreover, do not change when a constant is added to the rewards of a group.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

GROUP_STD_EPSILON = 1e-4
"""ε of the group standard deviation, in reward units (TRL's value: bitwise parity needs it)."""
WHITENING_EPSILON = 1e-8
"""ε of the global standard deviation of ``reinforce_pp``, in reward units."""


def grpo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Group-normalised rewards: ``A_i = (r_i − mean_G r) / (std_G r + ε)``, std with ddof = 1, ε = 1e-4.

    Source: GRPO, DeepSeekMath (arXiv 2402.03300), §4.1.2.
    """
    return _finished(
        (rewards - _group_mean(rewards, group_size)) / _group_scale(rewards, group_size), rewards, group_size
    )


def dr_grpo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Group-centred rewards: ``A_i = r_i − mean_G r``.

    Source: Dr. GRPO (arXiv 2503.20783), §3.2: without the std, which favours questions that are too easy or too hard.
    """
    return _finished(rewards - _group_mean(rewards, group_size), rewards, group_size)


def rloo(rewards: Float[Tensor, "N"], group_size: int) -> Float[Tensor, "N"]:
    """Leave-one-out baseline: ``A_i = r_i − mean_{j≠i} r_j``, over the judged members of the group.

    Equal to ``G/(G−1)`` times `dr_grpo`. A response that is alone with its verdict has no baseline: advantage 0.

    Source: RLOO (arXiv 2402.14740), §2.3.
    """
    judged = ~rewards.isnan()
    grouped, group_judged = rewards.nan_to_num().view(-1, group_size), judged.view(-1, group_size)
    others_sum = (grouped.sum(1, keepdim=True) - grouped).view(-1)
    others_count = (group_judged.sum(1, keepdim=True) - group_judged.long()).view(-1)
    return _finished(rewards - others_sum / others_count.clamp(min=1), rewards, group_size)


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


def exchangeable(
    rewards: Float[Tensor, "N"],
    group_size: int,
    *,
    sequence_weights: Float[Tensor, "N"] | None = None,
    completion_ids: Int[Tensor, "N T"] | None = None,
    mask: Int[Tensor, "N T"] | None = None,
    prefix_tree: bool = False,
    token_class: bool = False,
    correlation_threshold: float = 0.2,
) -> Float[Tensor, "N"] | Float[Tensor, "N T"]:
    """The baseline under which tokens shared by a whole group cancel, whatever the loss weights trajectories by.

    ``b = Σ_j k_j r_j / Σ_j k_j``, ``A_i = (r_i − b) / (std_G r + ε)``  ⇒  ``Σ_i k_i A_i = 0`` for any ``k ≥ 0``.

    ``k`` (``sequence_weights``) is what the configured loss multiplies every token of response i by (see
    `trainer.sequence_weights.loss_sequence_weights`); ``None`` means constant. Where k is constant in a group the
    baseline *is* the group mean, bit for bit. A response of weight 0 (a truncated one that the loss masks) has no part
    in any baseline, but in the std. A group whose weights are all 0 falls back to the mean (nothing of it reaches the
    gradient).

    Options, at most one:

    - ``prefix_tree``: ``b(h) = mean reward of the other group members whose prefix equals h``, at the deepest ancestor
      of h that another judged member shares; ``A_{i,t} = (r_i − b(h_{i,t})) / σ``, (N, T). A state-dependent baseline,
      hence unbiased but for σ. Where two or more members share h and all go on with the same token, their contributions
      cancel; for equal weights only (or 0).
    - ``token_class``: for a token id v that every judged response contains and whose counts ``n_{v,i}`` have
      ``|corr(n_v, r)| < correlation_threshold``: ``b_v = Σ k_i n_{v,i} r_i / Σ k_i n_{v,i}``, (N, T); other tokens
      keep b. **Biased**: the baseline depends on the action.

    Source: the condition is arXiv 2604.13088 v1, Eq. 17 and 18; this baseline, its dual, is derived in this project.

    Raises:
        ValueError: both options, inputs that an option needs are missing, or positive weights that differ in a group
            under ``prefix_tree``.
    """
    if prefix_tree and token_class:
        raise ValueError(
            "exchangeable: prefix_tree and token_class are both on, but each defines the baseline of every token. "
            "Keep one of them."
        )
    weights = torch.ones_like(rewards) if sequence_weights is None else sequence_weights.to(rewards.dtype)
    baseline = _weighted_baseline(rewards, weights, group_size)
    scale = _group_scale(rewards, group_size)
    if not prefix_tree and not token_class:
        return _finished((rewards - baseline) / scale, rewards, group_size)

    if completion_ids is None or mask is None:
        raise ValueError(
            "exchangeable: prefix_tree and token_class compare tokens, but completion_ids or mask is missing. "
            "Pass both, (N, T)."
        )
    trained = rewards.masked_fill(weights == 0, torch.nan)
    if prefix_tree:
        if not bool(_constant_in_group(weights, trained, group_size).all()):
            raise ValueError(
                "exchangeable: prefix_tree averages plain rewards, so shared tokens cancel only under equal "
                "trajectory weights, but sequence_weights differ inside a group. Use a loss_type with one denominator "
                "(dapo, dr_grpo, cispo), or leave prefix_tree off."
            )
        baselines = _prefix_tree_baseline(rewards, trained, completion_ids, group_size)
    else:
        baselines = _token_class_baseline(
            trained, weights, baseline, completion_ids, mask, group_size, correlation_threshold
        )
    return _finished((rewards[:, None] - baselines) / scale[:, None], rewards, group_size)


def dead_groups(rewards: Float[Tensor, "N"], group_size: int) -> Bool[Tensor, "N"]:
    """Rows of groups that hold nothing to learn: all judged rewards equal, or nothing judged."""
    grouped = rewards.view(-1, group_size)
    highest = grouped.nan_to_num(nan=-torch.inf).amax(1)
    lowest = grouped.nan_to_num(nan=torch.inf).amin(1)
    return (highest <= lowest).repeat_interleave(group_size)


def _finished(advantages: Tensor, rewards: Tensor, group_size: int) -> Tensor:
    """Exact zeros for dead groups, NaN for unjudged rows; (N,) or (N, T)."""
    dead, unjudged = dead_groups(rewards, group_size), rewards.isnan()
    if advantages.dim() == 2:
        dead, unjudged = dead[:, None], unjudged[:, None]
    return advantages.masked_fill(dead, 0.0).masked_fill(unjudged, torch.nan)


def _group_mean(rewards: Tensor, group_size: int) -> Tensor:
    return rewards.view(-1, group_size).nanmean(1).repeat_interleave(group_size)


def _group_scale(rewards: Tensor, group_size: int) -> Tensor:
    """``std_G r + ε`` over the judged rewards, ddof = 1, in TRL's order of operations (they decide the last bit)."""
    grouped = rewards.view(-1, group_size)
    count = (~grouped.isnan()).sum(1, keepdim=True).to(rewards.dtype)
    variance = ((grouped - grouped.nanmean(1, keepdim=True)) ** 2).nanmean(1, keepdim=True) * (count / (count - 1))
    return variance.sqrt().view(-1).repeat_interleave(group_size) + GROUP_STD_EPSILON


def _constant_in_group(weights: Tensor, rewards: Tensor, group_size: int) -> Tensor:
    """(N,) bool: the judged members of the row's group all have the same weight."""
    judged = ~rewards.isnan()
    highest = weights.where(judged, -torch.inf).view(-1, group_size).amax(1)
    lowest = weights.where(judged, torch.inf).view(-1, group_size).amin(1)
    return (highest <= lowest).repeat_interleave(group_size)


def _weighted_baseline(rewards: Tensor, weights: Tensor, group_size: int) -> Tensor:
    """``Σ k r / Σ k`` over the judged members (N,); the plain mean, bit for bit, where k is constant or all 0.

    Summed as distances from the highest reward of weight > 0, which leaves no float noise where these are all equal.
    """
    constant = _constant_in_group(weights, rewards, group_size)
    weights = weights.where(~rewards.isnan(), 0.0).view(-1, group_size)
    grouped = rewards.nan_to_num().view(-1, group_size)
    highest = grouped.masked_fill(weights == 0, -torch.inf).amax(1, keepdim=True)
    weighted = highest + (weights * (grouped - highest)).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    plain = constant | (weights == 0).all(1).repeat_interleave(group_size)
    return torch.where(plain, _group_mean(rewards, group_size), weighted.view(-1).repeat_interleave(group_size))


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
        other = ~trained[group].isnan() & ~own_row  # (G, G): row i's other members j
        depth = (ids[:, None] == ids[None]).long().cumprod(-1).sum(-1).masked_fill(~other, -1)
        ancestor = tokens.minimum(depth.amax(1, keepdim=True))  # (G, T); −1 where there is no other member
        member = (depth[:, :, None] >= ancestor[:, None, :]) & other[:, :, None]  # (G, G, T)
        distance = (own[None, :] - own[:, None]).masked_fill(~other, 0.0)  # r_j − r_i: exactly 0 for equal rewards
        baselines.append(own[:, None] + (distance[:, :, None] * member).sum(1) / member.sum(1).clamp(min=1))
    return torch.cat(baselines)


def _token_class_baseline(
    trained: Tensor,
    weights: Tensor,
    baseline: Tensor,
    completion_ids: Tensor,
    mask: Tensor,
    group_size: int,
    correlation_threshold: float,
) -> Tensor:
    """``Σ k n_v r / Σ k n_v`` for the tokens of weak-credit classes, ``b`` for all others, (N, T).

    Only rows whose ``trained`` reward is not NaN decide and use them. A constant count correlates with nothing.
    """
    baselines = baseline[:, None].repeat(1, completion_ids.shape[1])
    for start in range(0, len(trained), group_size):
        rows = torch.arange(start, start + group_size, device=trained.device)
        rows = rows[~trained[rows].isnan()]
        if len(rows) < 2:
            continue
        classes, class_of_token = completion_ids[rows].unique(return_inverse=True)
        counts = class_of_token.new_zeros(len(rows), len(classes))
        counts = counts.scatter_add(1, class_of_token, mask[rows].long()).to(trained.dtype)  # n_{v,i}, (rows, V)
        rewards = trained[rows, None]
        correlation = torch.cosine_similarity(counts - counts.mean(0), rewards - rewards.mean(), dim=0)
        weak = (counts > 0).all(0) & (correlation.abs() < correlation_threshold)
        exposure = weights[rows, None] * counts
        class_baseline = rewards.max() + (exposure * (rewards - rewards.max())).sum(0) / exposure.sum(0)
        baselines[rows] = torch.where(weak[class_of_token], class_baseline[class_of_token], baselines[rows])
    return baselines

"""Credit that spares what right and wrong answers of a group begin or end with alike, arXiv 2508.03772."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import dr_grpo
from evenkeel.trainer.algorithms.contract import NotNegative, traits
from evenkeel.trainer.algorithms.turns import counted_first


@traits(trains_dead_groups=True)
def gtpo_conflict(
    rewards: Float[Tensor, "N"],
    group_size: int,
    completion_ids: Int[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    entropies: Float[Tensor, "N T"],
    *,
    conflict_weight: NotNegative = 2.0,
    gamma: float = 0.1,
    max_entropy: float | None = 0.7,
) -> Float[Tensor, "N T"]:
    """GTPO with conflict tokens: the ones that right and wrong answers share are pushed up only.

    ``A_{i,t} = λ_{i,t} (r_i − mean_G r − γ ⟨H⟩_i)``, ⟨H⟩_i the response's mean entropy; 0 in all of a response with
    ``⟨H⟩_i > max_entropy`` (``null``: of none).

    A token is in conflict where responses above and below the group's mean have the same id at its place, counted from
    the start, and so at all places before it; likewise counted from the end. There λ is ``conflict_weight`` above the
    mean (its square, in conflict from both sides) and 0 below it; everywhere else 1. Groups of equal rewards keep
    ``−γ ⟨H⟩_i``. What a tool inserts takes no part.

    Source: GTPO (arXiv 2508.03772), the objective of the authors' README; not `gtpo`, which is arXiv 2508.04349.
    Evidence: golden table from running the authors' ``build_conflict_mask`` and the shaping of their forward pass.
    Limits: the objective filters by entropy only where the untrained policy is below ln 2 nats: write ``max_entropy:
        null`` above. The released code has 0.7, always filters, takes the current policy's entropy, and divides each
        response by the length of its longer run in conflict, which the objective does not. Use ``loss_type: grpo``,
        for its 1/L.
    """
    advantages = dr_grpo(rewards, group_size)
    mean_entropy = (entropies * mask).sum(1) / mask.sum(1).clamp(min=1)
    shaped = advantages - gamma * mean_entropy
    if max_entropy is not None:
        shaped = shaped.where(mean_entropy <= max_entropy, 0.0)
    above, below = advantages > 0, advantages < 0
    order = counted_first(mask)
    ids, written = completion_ids.gather(1, order), mask.gather(1, order).bool()
    from_end = (written.sum(1, keepdim=True) - 1 - torch.arange(mask.shape[1], device=mask.device)).clamp(min=0)
    first = _shared_run(ids, written, above, below, group_size)
    last = _shared_run(ids.gather(1, from_end), written, above, below, group_size).gather(1, from_end)
    weights = conflict_weight ** (first.to(shaped.dtype) + last.to(shaped.dtype))
    weights = weights.masked_fill((first | last) & below[:, None], 0.0)
    weights = torch.empty_like(weights).scatter(1, order, weights)
    credited = (weights * shaped[:, None]).masked_fill(~mask.bool(), 0.0)
    return credited.masked_fill(rewards.isnan()[:, None], torch.nan)


def _shared_run(
    ids: Int[Tensor, "N T"], written: Bool[Tensor, "N T"], above: Tensor, below: Tensor, group_size: int
) -> Bool[Tensor, "N T"]:
    """The leading places of rows ``above`` or ``below`` whose id a row of either kind of the group has there too."""
    grouped = ids.view(-1, group_size, ids.shape[1])
    present = written.view(-1, group_size, ids.shape[1])
    kinds = [rows.view(-1, group_size, 1) for rows in (above, below)]
    found = [torch.zeros_like(present), torch.zeros_like(present)]
    for member in range(group_size):
        own = slice(member, member + 1)
        same = (grouped == grouped[:, own]) & present & present[:, own]
        for shared, rows in zip(found, kinds, strict=True):
            shared |= same & rows[:, own]
    run = (found[0] & found[1]).long().cumprod(2).bool().view(ids.shape)
    return run & (above | below)[:, None]

"""Pure functions of what is measured. Shapes as in `trainer.advantages`; advantages of unjudged responses are 0.

A NaN says that the batch holds nothing to measure (no live group, no shared prefix): loggers leave it out.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def cancellation_residuals(contributions: Float[Tensor, "G M"]) -> Float[Tensor, "M"]:
    """``R = |Σ_i c_i| / Σ_i |c_i|`` of each column: 0 where contributions cancel, 1 where they all point one way.

    A column without any contribution is NaN: nothing there has to cancel.
    """
    return contributions.sum(0).abs() / contributions.abs().sum(0)


def shared_prefix_residual(
    advantages: Float[Tensor, "N T"],
    sequence_weights: Float[Tensor, "N"],
    completion_ids: Int[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    group_size: int,
) -> Float[Tensor, ""]:
    """Mean cancellation residual over the context–token pairs that a whole group shares.

    On the tokens that all responses of a group begin with, the contributions ``C = Σ_i k_i A_{i,t}`` should cancel:
    these tokens say nothing about which response was better. ~1e-7 for every exchangeable estimator; a sizeable value
    is the "learning tax" of arXiv 2604.13088. Dead groups do not count, nor tokens that no loss counts (tool output).
    """
    contributions = sequence_weights[:, None] * advantages * mask
    residuals = []
    for ids, group in zip(completion_ids.split(group_size), contributions.split(group_size), strict=True):
        shared = (ids == ids[0]).all(0).long().cumprod(0).bool()
        residuals.append(cancellation_residuals(group[:, shared]))
    return torch.cat(residuals).nanmean()


def frequent_token_residual(
    advantages: Float[Tensor, "N T"],
    sequence_weights: Float[Tensor, "N"],
    completion_ids: Int[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    group_size: int,
    num_tokens: int = 16,
) -> Float[Tensor, ""]:
    """Mean cancellation residual over the ``num_tokens`` most frequent token ids of the batch, per group.

    For token id v in a group: ``C_v = Σ_{i,t: o_{i,t}=v} k_i A_{i,t}``. Unlike `shared_prefix_residual` its contexts
    differ, so a moderate value is no fault; its rise over a run shows credit settling on connectives and format.
    """
    valid = mask.bool()
    ids, counts = completion_ids[valid].unique(return_counts=True)
    if len(ids) == 0:
        return advantages.new_tensor(torch.nan)
    frequent = ids[counts.topk(min(num_tokens, len(ids))).indices]
    contributions = (sequence_weights[:, None] * advantages) * valid
    per_response = torch.stack([(contributions * (completion_ids == token)).sum(1) for token in frequent], dim=1)
    residuals = [cancellation_residuals(group) for group in per_response.split(group_size)]
    return torch.cat(residuals).nanmean()


def token_prob_counts(
    probs: Float[Tensor, "B T"], mask: Int[Tensor, "B T"], edges: tuple[float, ...] = (0.25, 0.5, 0.75)
) -> Int[Tensor, "bins"]:
    """Number of tokens by the old policy's probability, in the bins that ``edges`` cut [0, 1] into.

    A bin holds its lower edge: [0, 0.25), [0.25, 0.5), [0.5, 0.75), [0.75, 1].

    To compare: the shares in arXiv 2505.12929 for Qwen2.5-7B on Knights & Knaves are 19.2 / 10.2 / 10.1 / 60.5 %.
    """
    bins = torch.bucketize(probs[mask.bool()], probs.new_tensor(edges), right=True)
    return torch.bincount(bins, minlength=len(edges) + 1)

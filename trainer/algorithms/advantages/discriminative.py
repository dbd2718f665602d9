"""Right answers scored above wrong ones: the objectives of DisCO and REAL as advantages."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.contract import Positive
from evenkeel.trainer.algorithms.groups import finished, group_count, scored_right


def disco(
    rewards: Float[Tensor, "N"],
    group_size: int,
    old_logps: Float[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    *,
    tau: Positive = 10.0,
    right_at: float = 1.0,
) -> Float[Tensor, "N"]:
    """Right answers up alike, wrong ones down by how likely they were.

    The gradient, at the policy that sampled, of ``mean_{right} [s_i − τ log mean_{wrong} e^{s_j/τ}]`` with
    ``s_i = (1/L_i) Σ_t log π``: ``A_i = 1/n⁺`` for each of the n⁺ right responses of the group,
    ``A_j = −softmax_j(s_j/τ)`` over its wrong ones. Advantages of a group sum to 0. τ → ∞ weighs wrong answers alike.
    A group without a right or without a wrong response gets 0.

    Source: DisCO (arXiv 2505.12366), scoring by log-likelihood; τ = 10 as in the authors' scripts for it.
    Evidence: golden table: the gradient of the authors' ``compute_policy_loss_disco_logL``, by autograd.
    Limits: the on-policy part. Its constraint β[KL − δ]₊² belongs to the loss; after the first update of a rollout
        batch the weights are those of the old policy. Use a loss with 1/L (``loss_type: grpo``), whose mean over rows
        makes the published objective's gradient 1/G of it.
    """
    right, wrong = scored_right(rewards, right_at)
    counted = mask.to(old_logps.dtype)
    scores = (old_logps * counted).sum(1) / counted.sum(1).clamp(min=1)
    grouped = (scores / tau).masked_fill(~wrong, -torch.inf).view(-1, group_size)
    blame = grouped.softmax(1).nan_to_num().view(-1)
    credit = right / group_count(right, group_size).clamp(min=1)
    both = (group_count(right, group_size) > 0) & (group_count(wrong, group_size) > 0)
    return finished((credit - blame).to(rewards.dtype).where(both, 0.0), rewards, group_size)


def real(
    rewards: Float[Tensor, "N"],
    group_size: int,
    lengths: Int[Tensor, "N"],
    *,
    tau: Positive = 0.5,
    right_at: float = 1.0,
    length_normalised: bool = False,
) -> Float[Tensor, "N"]:
    """Rewards as labels: right answers up, wrong ones down, each by 1 over how many the group has of its kind, plus 1.

    The gradient, at the policy that sampled, of ``−log(1 + Σ_wrong e^{s/τ}) − log(1 + Σ_right e^{−s/τ})`` with
    ``s_i = (1/L_i) Σ_t log π/π_old``: ``A_i = 1 / (τ (1 + n⁺))`` for each of the n⁺ right responses of the group,
    ``A_j = −1 / (τ (1 + n⁻))`` for its n⁻ wrong ones. A group without a right or without a wrong response gets 0. The
    coefficient `real` is what becomes of it once the policy has moved.

    The 1/L_i of s is the loss's (``loss_type: grpo``), whose gradient is then 1/G of the published one;
    ``length_normalised`` divides by the length here instead, for losses with one denominator, such as the
    coefficient's, which makes it smaller by the mean length too.

    Source: REAL (arXiv 2602.05630); τ = 0.5 as in the authors' script.
    Evidence: golden table: the gradient of the authors' ``compute_policy_loss_real``, by autograd.
    Limits: published for rewards of 0 and 1; here every reward below ``right_at`` is wrong.
    """
    right, wrong = scored_right(rewards, right_at)
    num_right, num_wrong = group_count(right, group_size), group_count(wrong, group_size)
    labels = right / (1 + num_right) - wrong / (1 + num_wrong)
    if length_normalised:
        labels = labels / lengths.clamp(min=1)
    both = (num_right > 0) & (num_wrong > 0)
    return finished((labels / tau).to(rewards.dtype).where(both, 0.0), rewards, group_size)

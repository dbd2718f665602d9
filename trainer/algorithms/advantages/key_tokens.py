"""KTAE: which token ids tell the right responses of a group from the wrong ones, by counting."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.groups import finished

FREQUENCY_EPSILON = 1e-5
"""ε of the ratio of two BM25 frequencies (the authors' value)."""

BM25_SATURATION, BM25_LENGTH = 2.0, 0.5
"""BM25's k₁ and b (the authors' values)."""

SAME_PROBABILITY = 1 + 1e-6
"""Two tables as likely as each other, up to rounding, count as equally extreme in Fisher's test."""


def ktae(
    rewards: Float[Tensor, "N"],
    group_size: int,
    completion_ids: Int[Tensor, "N T"],
    mask: Int[Tensor, "N T"],
    *,
    end_token_id: int = 151643,
) -> Float[Tensor, "N T"]:
    """GRPO plus a value for each token id, from how it is spread over right and wrong responses of the group.

    ``A_{i,t} = grpo_i + v(o_{i,t})``, ``v = 2σ(½ (F + IG)(h + q)) − 1`` in (−1, 1). With a, b the numbers of right and
    of wrong responses that contain the id: F = ``e^{−2p}`` of Fisher's exact test (two-sided p; 0 where p = 1), IG the
    information gain in bits, ``h = asin √(a/n⁺) − asin √(b/n⁻)``, ``q = f⁺/(f⁻+ε) − f⁻/(f⁺+ε)`` of the BM25-saturated
    frequencies ``f = 3x/(x + 2(½ + ½ l))``, x the share of the id among the tokens of its side, l the tokens of that
    side over the mean of both. Right means a reward > 0. v is 0 in a group without a right or without a wrong
    response, for ``end_token_id``, and outside ``mask``.

    Source: KTAE (arXiv 2505.16826), as the authors' code has it; 151643 is the end-of-text token of its Qwen models.
    Evidence: golden table from running the authors' ``ComputeKeyTokens`` in double precision, equally likely tables
        recognised as such.
    Limits: the authors compare probabilities of tables bit by bit, so that rounding decides which equally likely tables
        count in p. That moves v by up to .1 in the golden inputs, in 300 random groups of 8 by up to .59 (.03 in the
        mean, more than .001 for 47 % of the tokens), of 16 by up to .79. With ties recognised in their code the two
        differ by 1.8e-6 there. v is not centered: a group's advantages need not sum to 0.
    """
    values = torch.zeros(completion_ids.shape, dtype=torch.float64, device=rewards.device)
    for start in range(0, len(rewards), group_size):
        rows = torch.arange(start, start + group_size, device=rewards.device)
        rows = rows[~rewards[rows].isnan()]
        right = rewards[rows] > 0
        if bool(right.any()) and not bool(right.all()):
            values[rows] = _token_values(completion_ids[rows], mask[rows].bool(), right)
    values = values.masked_fill((completion_ids == end_token_id) | ~mask.bool(), 0.0)
    return finished(grpo(rewards, group_size)[:, None] + values.to(rewards.dtype), rewards, group_size)


def _token_values(completion_ids: Tensor, counted: Tensor, right: Tensor) -> Tensor:
    """v of each token of a group that has right and wrong rows, (rows, T), float64."""
    classes, class_of_token = completion_ids.unique(return_inverse=True)
    occurrences = class_of_token.new_zeros(len(right), len(classes))
    occurrences = occurrences.scatter_add(1, class_of_token, counted.long())
    present = (occurrences > 0).double()
    totals = torch.stack([right.sum(), (~right).sum()]).double()  # n⁺, n⁻
    containing = torch.stack([present[right].sum(0), present[~right].sum(0)])  # a, b
    tokens = torch.stack([occurrences[right].sum(0), occurrences[~right].sum(0)]).double()
    p_value = _fisher_p_value(containing[0], containing.sum(0), totals[0], totals.sum())
    weight = (-2 * p_value).exp().masked_fill(p_value >= 1 / SAME_PROBABILITY, 0.0)
    weight = weight + _information_gain(containing, totals)
    angle = (containing / totals[:, None]).sqrt().asin()
    frequency = _saturated_frequency(tokens)
    odds = frequency / (frequency.flip(0) + FREQUENCY_EPSILON)
    direction = angle[0] - angle[1] + odds[0] - odds[1]
    return (2 * (weight / 2 * direction).sigmoid() - 1)[class_of_token]


def _fisher_p_value(in_right: Tensor, in_all: Tensor, num_right: Tensor, num_rows: Tensor) -> Tensor:
    """Two-sided p of ``in_right`` of the ``in_all`` rows with an id being right ones: all tables no likelier summed."""
    counts = torch.arange(int(num_rows) + 1, dtype=in_right.dtype, device=in_right.device)[:, None]

    def log_binomial(top: Tensor, bottom: Tensor) -> Tensor:
        return torch.lgamma(top + 1) - torch.lgamma(bottom + 1) - torch.lgamma(top - bottom + 1)

    def probability(count: Tensor) -> Tensor:
        ways = log_binomial(num_right, count) + log_binomial(num_rows - num_right, in_all - count)
        return (ways - log_binomial(num_rows, in_all)).exp()

    possible = (counts <= in_all) & (counts <= num_right) & (in_all - counts <= num_rows - num_right)
    tables = probability(counts.where(possible, in_right))
    return tables.where(possible & (tables <= probability(in_right) * SAME_PROBABILITY), 0.0).sum(0)


def _information_gain(containing: Tensor, totals: Tensor) -> Tensor:
    """Bits about right or wrong that the presence of an id gives; (2, V) and (2,) → (V,)."""
    absent = totals[:, None] - containing

    def remaining(side: Tensor) -> Tensor:
        share = side / side.sum(0).clamp(min=1)
        return side.sum(0) / totals.sum() * -torch.xlogy(share, share).sum(0) / torch.log(share.new_tensor(2.0))

    return remaining(totals[:, None]) - remaining(containing) - remaining(absent)


def _saturated_frequency(tokens: Tensor) -> Tensor:
    """BM25's saturation of the share of each id among the tokens of right and of wrong rows, (2, V)."""
    side_total = tokens.sum(1, keepdim=True)
    relative_length = side_total / side_total.mean().clamp(min=1)
    share = tokens / side_total.clamp(min=1)
    penalty = BM25_SATURATION * (1 - BM25_LENGTH + BM25_LENGTH * relative_length)
    return share * (BM25_SATURATION + 1) / (share + penalty)

"""The answer to a claim: supported, contradicted or not decided, wrong for equal variants in at most 5 %.

A claim says that a variant is better (or worse) than each of K others: its baseline and the controls that could explain
the difference as well. With d_k the difference from the k-th, counted positive in the claimed direction, and its
interval at confidence 1 − α from `trainer.lab.statistics.intervals`,

    supported       every interval lies above 0                    (intersection–union: Berger 1982, Technometrics 24)
    contradicted    some interval at 1 − α/K lies below 0          (Bonferroni)
    not decided     otherwise

Among equals each end of a two-sided interval is wrong in α/2, so "supported" comes out in at most α/2 and
"contradicted" in at most K · α/(2K) = α/2: together in α = 5 %. With K = 1 it is the verdict's own rule. The smallest
effect that matters does not affect the answer: it gives the number of seeds that a decision would take, and whether
such an effect is excluded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from scipy import stats

from evenkeel.trainer.evaluation.shares import CONFIDENCE, Estimate
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS, seeds_needed

ALPHA = 1 - CONFIDENCE
Answer = Literal["supported", "contradicted", "not decided"]


@dataclass(frozen=True)
class ClaimAnswer:
    """The answer to a claim, with the differences that it follows from.

    Attributes:
        differences: from each of the others, positive in the claimed direction, with their intervals at 1 − α.
        excludes_what_matters: whether an effect as large as the smallest one that matters is excluded: the upper end of
            some interval lies below it.
        seeds_needed: of an undecided claim: about how many seeds would find the smallest effect that matters in 80 %;
            ``None`` where more than 1,000 would be needed, or other items, and where too few seeds are there to say.
        reason: why there are no differences, where some run has no value: the claim is then not decided.
    """

    answer: Answer
    differences: dict[str, Estimate]
    excludes_what_matters: bool
    seeds_needed: int | None
    reason: str = ""


def claim_answer(differences: Mapping[str, Estimate], matters: float) -> ClaimAnswer:
    """The answer by the rule of this module.

    Args:
        differences: from each of the others, positive in the claimed direction, with their intervals at 1 − α.
        matters: the smallest effect that matters, above 0.
    """
    every, shared_out = [*differences.values()], ALPHA / len(differences)
    scored = [each for each in every if each.num_seeds >= FEWEST_SEEDS and each.standard_error > 0]
    answer: Answer = "not decided"
    if scored == every and all(each.low > 0 for each in scored):
        answer = "supported"
    elif any(_upper_end(each, shared_out) < 0 for each in scored):
        answer = "contradicted"
    needed = [seeds_needed(each, matters) if each.num_seeds > 1 else None for each in every]
    known = [number for number in needed if number is not None]
    return ClaimAnswer(
        answer,
        dict(differences),
        any(each.high < matters for each in scored),
        max(known) if answer == "not decided" and len(known) == len(needed) else None,
    )


def _upper_end(difference: Estimate, alpha: float) -> float:
    """Of its t interval at confidence 1 − ``alpha``."""
    half = float(stats.t.isf(alpha / 2, difference.num_seeds - 1)) * difference.standard_error
    return difference.value + half

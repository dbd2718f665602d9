"""Estimators for a verifier whose error rates are known: the gradient of its verdicts, made that of the truth."""

from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.contract import traits


@traits(trains_dead_groups=True)
def backward_corrected(
    rewards: Float[Tensor, "N"], *, false_positive: float = 0.0, false_negative: float = 0.0
) -> Float[Tensor, "N"]:
    """The unbiased estimate of the true verdict: what was seen, less the false positives, over what is left of it.

    ``A_i = (r_i − ρ₀) / (1 − ρ₀ − ρ₁)`` for rewards of 0 and 1; ρ₀ = P(1 | wrong) = ``false_positive``, ρ₁ = P(0 |
    right) = ``false_negative``. E[A | right] = 1, E[A | wrong] = 0. At rates 0 it is ``reinforce``.

    Source: the backward correction of arXiv 2510.00915.
    Evidence: the formula; the expectation over the verdict's errors is held against the truth for all rates.
    Limits: no baseline, and the variance of 1 / (1 − ρ₀ − ρ₁)². A group's mean would take ρ₀ out again, so that under
        ``dr_grpo`` the correction is a factor of the learning rate, and nothing at all where a std divides (``grpo``).
        Errors that depend on the answer stay.

    Raises:
        ValueError: rates below 0, or of a sum of 1 or more: such verdicts say nothing, or the opposite.
    """
    _check(false_positive, false_negative)
    return (rewards - false_positive) / (1 - false_positive - false_negative)


@traits(trains_dead_groups=True)
def forward_corrected(rewards: Float[Tensor, "N"], *, false_negative: float = 0.0) -> Float[Tensor, "N"]:
    """Weights of the two verdicts under which false negatives cancel; the rate of false positives need not be known.

    ``A_i = r_i − (1 − ρ₁)`` for rewards of 0 and 1: ρ₁ where r = 1, ρ₁ − 1 where r = 0; ρ₁ = P(0 | right) =
    ``false_negative``. E[A | right] = 0, E[A | wrong] = −(1 − ρ₀ − ρ₁), so that the expected update is (1 − ρ₀ − ρ₁)
    times that of the truth, with 1 as its baseline. At rate 0 it is ``nsr``.

    Source: the forward correction of arXiv 2510.00915.
    Evidence: the formula; the expectation over the verdict's errors is held against the truth for all rates.
    Limits: as of ``backward_corrected``; the constant is the baseline, and another one would take its place.

    Raises:
        ValueError: a rate outside 0 … 1.
    """
    _check(0.0, false_negative)
    return rewards - (1 - false_negative)


def _check(false_positive: float, false_negative: float) -> None:
    if min(false_positive, false_negative) < 0 or false_positive + false_negative >= 1:
        raise ValueError(
            f"false_positive = {false_positive:g} and false_negative = {false_negative:g} cannot be corrected: of such "
            "verdicts right ones are as likely behind a wrong answer, or more. Give rates from 0 on with a sum below 1."
        )

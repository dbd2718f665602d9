"""Estimators for a verifier whose error rates are known: the gradient of its verdicts, made that of the truth."""

from jaxtyping import Float
from torch import Tensor

from evenkeel.trainer.algorithms.contract import Share, traits


@traits(trains_dead_groups=True)
def backward_corrected(
    rewards: Float[Tensor, "N"], *, false_positive: Share = 0.0, false_negative: Share = 0.0
) -> Float[Tensor, "N"]:
    """The unbiased estimate of the true verdict: what was seen, less the false positives, over what is left of it.

    ``A_i = (r_i − ρ₀) / (1 − ρ₀ − ρ₁)`` for rewards of 0 and 1; ρ₀ = P(1 | wrong) = ``false_positive``, ρ₁ = P(0 |
    right) = ``false_negative``. E[A | right] = 1, E[A | wrong] = 0. At rates 0 it is ``reinforce``.

    Source: the backward correction of arXiv 2510.00915 (Eq. 3, Algorithm 1).
    Evidence: the paper's text read in a stored copy, its code not found; the expectation over the verdict's errors is
        held against the truth for all rates.
    Limits: no baseline, and the variance of 1 / (1 − ρ₀ − ρ₁)². The paper's default in GRPO (B.2) subtracts the mean of
        the others' corrected rewards; there ρ₀ cancels, and what is left is ``rloo`` times 1 / (1 − ρ₀ − ρ₁), a factor
        of the learning rate. Where a std divides (``grpo``) nothing is left. Errors that depend on the answer stay.

    Raises:
        ValueError: rates of a sum of 1 or more: such verdicts say nothing, or the opposite.
    """
    if false_positive + false_negative >= 1:
        raise ValueError(
            f"false_positive = {false_positive:g} and false_negative = {false_negative:g} leave nothing of a verdict. "
            "Give rates with a sum below 1."
        )
    return (rewards - false_positive) / (1 - false_positive - false_negative)


@traits(trains_dead_groups=True)
def forward_corrected(rewards: Float[Tensor, "N"], *, false_negative: Share = 0.0) -> Float[Tensor, "N"]:
    """Weights of the two verdicts under which false negatives cancel; the rate of false positives need not be known.

    ``A_i = r_i − (1 − ρ₁)`` for rewards of 0 and 1: ρ₁ where r = 1, ρ₁ − 1 where r = 0; ρ₁ = P(0 | right) =
    ``false_negative``. E[A | right] = 0, E[A | wrong] = −(1 − ρ₀ − ρ₁), so that the expected update is (1 − ρ₀ − ρ₁)
    times that of the truth, with 1 as its baseline. At rate 0 it is ``nsr``.

    Source: the forward correction of arXiv 2510.00915 (Proposition 3.4, B.3 with its defaults: no baseline, scale 1).
    Evidence: as of ``backward_corrected``.
    Limits: the constant is the baseline, and another one would take its place. The scales 1 − ρ₀ − ρ₁ and 1 − ρ₁ of B.3
        are factors of the learning rate; the paper's online estimate of ρ₁ is not here. Its Algorithm 3 multiplies by
        the reward once more, which B.3 and B.4 advise against.
    """
    return rewards - (1 - false_negative)

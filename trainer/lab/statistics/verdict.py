"""The verdict on a variant: better, worse, or not distinguishable and the number of seeds that would be needed."""

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from evenkeel.trainer.evaluation.shares import CONFIDENCE, Estimate
from evenkeel.trainer.lab.statistics.intervals import Floats, StatisticsError

FEWEST_SEEDS = 3
POWER = 0.8
MOST_SEEDS = 1_000
"""Larger numbers of needed seeds are not given."""

Outcome = Literal["better", "worse", "not distinguishable", "no verdict"]


@dataclass(frozen=True)
class Verdict:
    """An outcome and the sentence that explains it; ``seeds_needed`` is ``None`` where seeds alone would not help."""

    outcome: Outcome
    sentence: str
    seeds_needed: int | None = None


def verdict(difference: Estimate) -> Verdict:
    """Better or worse only where the interval of the paired difference excludes 0.

    Fewer than three seeds, or seeds without any spread, give no verdict, however large the difference. An
    interval that holds 0 is no evidence of equality: the sentence gives the seeds, to two digits, that would be needed.
    """
    seeds, outcome = difference.num_seeds, outcome_of(difference)
    if seeds < FEWEST_SEEDS:
        return Verdict(outcome, f"no verdict: {seeds} of at least {FEWEST_SEEDS} seeds to compare")
    if outcome == "no verdict":
        return Verdict(outcome, f"no verdict: {seeds} seeds with the same difference show no spread")
    if outcome != "not distinguishable":
        return Verdict(outcome, f"{outcome} ({seeds} seeds)")
    start = f"{outcome} with {seeds} seeds; "
    if difference.standard_error == 0:
        return Verdict(outcome, f"{start}no difference was seen at all")
    if (needed := seeds_needed(difference)) is not None:
        needed = _two_digits(needed)
        return Verdict(outcome, f"{start}about {needed} seeds would be needed", needed)
    return Verdict(outcome, start + _beyond_these_items(difference))


def outcome_of(difference: Estimate) -> Outcome:
    """The outcome of `verdict` without its sentence."""
    if difference.num_seeds < FEWEST_SEEDS or (difference.standard_error == 0 and difference.value):
        return "no verdict"
    if difference.low > 0 or difference.high < 0:
        return "better" if difference.value > 0 else "worse"
    return "not distinguishable"


def _beyond_these_items(difference: Estimate) -> str:
    """The seeds and items needed where no number of seeds (up to 1,000) is enough with these items."""
    with_endless_items = seeds_needed(replace(difference, item_variance=0.0))
    if with_endless_items is None:
        return f"more than {MOST_SEEDS:,} seeds would be needed to see a difference this small"
    items = f"more than {difference.num_items:,} items"
    if with_endless_items <= difference.num_seeds:
        return f"{items} would be needed"
    return f"about {_two_digits(with_endless_items)} seeds would be needed, and {items}"


def seeds_needed(difference: Estimate, effect: float | None = None) -> int | None:
    """The `fewest_seeds` m for a true difference of ``effect``, or as large as the observed one.

    The standard error at m seeds is ``√(seed_variance / m + item_variance)``, both as estimated: with few seeds they
    are rough, and so is m.
    """
    wanted = difference.value if effect is None else effect

    def detected(seeds: int) -> float:
        error = math.sqrt(difference.seed_variance / seeds + difference.item_variance)
        return power(abs(wanted) / error, seeds) if error else float(wanted != 0)

    return fewest_seeds(detected)


def fewest_seeds(power_of: Callable[[int], float]) -> int | None:
    """The smallest number of seeds, three or more, whose power is ≥ 0.8; ``None`` above 1,000."""
    numbers = range(FEWEST_SEEDS, MOST_SEEDS + 1)
    position = bisect.bisect_left(numbers, POWER, key=power_of)
    return numbers[position] if position < len(numbers) else None


def power(effect: float, num_seeds: int) -> float:
    """Probability that the t interval of ``num_seeds`` seeds excludes 0 when the true difference is ``effect`` standard
    errors (of the mean at that number of seeds).

    ``P(|T| > t_{α/2, m−1})`` with T non-central t of m − 1 degrees of freedom and non-centrality ``effect``.
    """
    shift, freedom = min(effect, 30.0), num_seeds - 1  # 30: certain, and stable
    limit = stats.t.ppf((1 + CONFIDENCE) / 2, freedom)
    return float(stats.nct.sf(limit, freedom, shift) + stats.nct.cdf(-limit, freedom, shift))


def holm_adjusted(p_values: ArrayLike) -> Floats:
    """p-values (C,) of C comparisons, adjusted so that P(any false alarm) ≤ α: ``max_{j ≤ k} (C − j + 1)·p_(j)``, ≤ 1.

    NaN (no test) stays NaN and does not count. Source: Holm 1979, Scand. J. Statist. 6.
    """
    given = np.asarray(p_values, float)
    if ((given < 0) | (given > 1)).any():
        raise StatisticsError(f"p-values lie in 0 … 1: {given.tolist()}.")
    adjusted = np.full_like(given, np.nan)
    order = np.argsort(given)[: int((~np.isnan(given)).sum())]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * given[order]))
    return adjusted


def _two_digits(number: int) -> int:
    return round(number, min(0, 2 - len(str(number))))

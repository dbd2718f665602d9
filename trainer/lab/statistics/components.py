"""Where the noise of a difference comes from: seeds, items, and seed × item.

The paired difference between two variants, d[s, i], follows the crossed model of `trainer.lab.statistics.intervals`,

    d[s, i] = Δ + seed_s + item_i + rest_si          the sampling of completions is in the rest

`DifferenceComponents` holds the three variances. What a sweep of S seeds and I items would see then follows:
``Var(mean) = (seeds + seed_items / I) / S + items / I``. Estimates are those of the analysis of variance (Cornfield and
Tukey 1956, Ann. Math. Stat. 27), negative ones set to 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenkeel.trainer.lab.statistics.intervals import Floats, StatisticsError


@dataclass(frozen=True)
class DifferenceComponents:
    """Variances of a difference between two variants' accuracies in 0 … 1.

    Attributes:
        seeds: of the true difference between pairs of seeds.
        items: of what an item adds to the difference in every seed.
        seed_items: of what is left: one item in one pair of seeds.
        freedom: degrees of freedom of ``seeds``, for `uncertainty`.
    """

    seeds: float
    items: float
    seed_items: float
    freedom: int

    def seed_variance(self, num_items: int) -> float:
        """Of a pair of seeds' mean difference over the items, as `Estimate.seed_variance`."""
        return self.seeds + self.seed_items / num_items

    def standard_error(self, num_seeds: int, num_items: int) -> float:
        """Of the mean difference over seeds and items."""
        return math.sqrt(self.seed_variance(num_items) / num_seeds + self.items / num_items)


def paired_components(pairs: Sequence[tuple[Floats, Floats]]) -> DifferenceComponents:
    """From variants that were run with their baselines' seeds, accuracies (S, I) each: rows of one seed pair.

    The mean squares of several comparisons are pooled; where these share a baseline they are not independent, and
    ``freedom`` is somewhat too large.

    Raises:
        StatisticsError: no comparison has two pairs of seeds.
    """
    differences = [left - right for left, right in pairs if len(left) > 1]
    if not differences:
        raise StatisticsError("It takes two pairs of seeds to see how much a difference varies.")
    of_seeds, rest, freedom = _pooled(differences)
    of_items = [(len(table) * _variance(table.mean(0)) - rest) / len(table) for table in differences]
    return DifferenceComponents(max(0.0, of_seeds), max(0.0, float(np.mean(of_items))), rest, freedom)


def unpaired_components(
    groups: Sequence[Floats], contrasts: Sequence[tuple[Floats, Floats]] = ()
) -> DifferenceComponents:
    """From runs of single variants, accuracies (S, I): a difference has the variances of two runs, as if unpaired.

    Pairs that share prompts and noise differ less than that, so what follows errs to the cautious side. What an item
    adds to a difference shows only between variants: the variance over items of the difference of their means, less the
    noise in it. Without any ``contrasts`` it is taken as 0.

    Raises:
        StatisticsError: no variant has two seeds.
    """
    several = [group for group in groups if len(group) > 1]
    if not several:
        raise StatisticsError("It takes two seeds of one variant to see how much runs vary.")
    of_seeds, rest, freedom = _pooled(several)
    of_items = [
        _variance(left.mean(0) - right.mean(0)) - rest * (1 / len(left) + 1 / len(right)) for left, right in contrasts
    ]
    items = float(np.mean(of_items)) if of_items else 0.0
    return DifferenceComponents(max(0.0, 2 * of_seeds), max(0.0, items), 2 * rest, freedom)


def _variance(of_items: Floats) -> float:
    """Between items; 0 where a run is one number."""
    return float(of_items.var(ddof=1)) if len(of_items) > 1 else 0.0


def _pooled(tables: Sequence[Floats]) -> tuple[float, float, int]:
    """(variance of seeds, residual variance, degrees of freedom between seeds) of tables (S, I) with the same items."""
    freedom, num_items = sum(len(table) - 1 for table in tables), tables[0].shape[1]
    between = sum((len(table) - 1) * float(table.mean(1).var(ddof=1)) for table in tables) / freedom
    residuals = [table - table.mean(1, keepdims=True) - table.mean(0) + table.mean() for table in tables]
    rest = sum(float((each**2).sum()) for each in residuals) / (freedom * max(1, num_items - 1))
    return between - rest / num_items, rest, freedom

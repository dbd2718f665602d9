"""Where the noise of a difference comes from: seeds, items, seed × item, and the sampling of completions.

Of the paired difference between two variants, d[s, i], in the crossed model of `trainer.lab.statistics.intervals`,

    d[s, i] = Δ + seed_s + item_i + rest_si + sampling_si / √k          k completions an item

`DifferenceComponents` holds the four variances. What a sweep of S seeds, I items and k completions would see then
follows: ``Var(mean) = (seeds + (seed_items + sampling/k) / I) / S + items / I``. Estimates are those of the analysis of
variance (Cornfield and Tukey 1956, Ann. Math. Stat. 27), negative ones set to 0. The sampling of k ≥ 2 completions of
0 or 1 is p(1 − p), estimated without bias by ``p̂ (1 − p̂) · k / (k − 1)``, and no more of it is counted than the
residual holds; of a single completion it cannot be told from seed × item and is counted there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.trainer.lab.statistics.intervals import StatisticsError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DifferenceComponents:
    """Variances of a difference between two variants, of accuracies in 0 … 1.

    Attributes:
        seeds: of the true difference between pairs of seeds.
        items: of what an item adds to the difference in every seed.
        seed_items: of what is left: one item in one pair of seeds, beyond sampling.
        sampling: of one sampled completion an item of each variant.
        freedom: degrees of freedom behind ``seeds``, for `uncertainty`.
    """

    seeds: float
    items: float
    seed_items: float
    sampling: float
    freedom: int

    def seed_variance(self, num_items: int, samples: int) -> float:
        """Of a pair of seeds' mean difference over the items, as `Estimate.seed_variance`."""
        return self.seeds + self.rest(samples) / num_items

    def rest(self, samples: int) -> float:
        """Of one item in one pair of seeds: the residual of the analysis of variance."""
        return self.seed_items + self.sampling / samples

    def standard_error(self, num_seeds: int, num_items: int, samples: int) -> float:
        """Of the mean difference over seeds and items."""
        return math.sqrt(self.seed_variance(num_items, samples) / num_seeds + self.items / num_items)


@dataclass(frozen=True)
class Evaluated:
    """Runs of one variant on the same items: accuracies (S, I) of k completions each, without NaN."""

    accuracies: Floats
    samples: int

    @property
    def sampling(self) -> float:
        """Variance of one sampled completion, mean over runs and items; 0 of a single one: see the module."""
        if self.samples < 2:
            return 0.0
        p = self.accuracies
        return float((p * (1 - p)).mean()) * self.samples / (self.samples - 1)


def paired_components(pairs: Sequence[tuple[Evaluated, Evaluated]]) -> DifferenceComponents:
    """From variants that were run with their baselines' seeds: row s of the one pairs with row s of the other.

    The mean squares of several comparisons are pooled; where these share a baseline they are not independent, and
    ``freedom`` is somewhat too large.

    Raises:
        StatisticsError: no comparison has two pairs of seeds.
    """
    differences = [left.accuracies - right.accuracies for left, right in pairs if len(left.accuracies) > 1]
    if not differences:
        raise StatisticsError("It takes two pairs of seeds to see how much a difference varies between them.")
    of_seeds, rest, freedom = _pooled(differences)
    of_items = [(len(table) * float(table.mean(0).var(ddof=1)) - rest) / len(table) for table in differences]
    sampling = np.mean([left.sampling + right.sampling for left, right in pairs])
    return _components(of_seeds, float(np.mean(of_items)), rest, float(sampling), pairs[0][0].samples, freedom)


def unpaired_components(
    groups: Sequence[Evaluated], contrasts: Sequence[tuple[Evaluated, Evaluated]] = ()
) -> DifferenceComponents:
    """From runs of single variants: a difference has the variances of two such runs, as if seeds did not pair.

    Pairs that share prompts and noise differ less than that, so what follows errs to the cautious side. What an item
    adds to a difference shows only between variants: the variance over items of the difference of their means, less the
    noise in it. Without any ``contrasts`` it is taken as 0.

    Raises:
        StatisticsError: no variant has two seeds.
    """
    several = [group.accuracies for group in groups if len(group.accuracies) > 1]
    if not several:
        raise StatisticsError("It takes two seeds of one variant to see how much runs vary between them.")
    of_seeds, rest, freedom = _pooled(several)
    of_items = [
        float((left.accuracies.mean(0) - right.accuracies.mean(0)).var(ddof=1))
        - rest * (1 / len(left.accuracies) + 1 / len(right.accuracies))
        for left, right in contrasts
    ]
    sampling = float(np.mean([group.sampling for group in groups]))
    items = float(np.mean(of_items)) if of_items else 0.0
    return _components(2 * of_seeds, items, 2 * rest, 2 * sampling, groups[0].samples, freedom)


def _components(
    seeds: float, items: float, rest: float, sampling: float, samples: int, freedom: int
) -> DifferenceComponents:
    """At most all of ``rest`` is sampling: runs that are evaluated with the same random numbers share some of it."""
    sampling = min(sampling, rest * samples)
    seed_items = max(0.0, rest - sampling / samples)
    return DifferenceComponents(max(0.0, seeds), max(0.0, items), seed_items, sampling, freedom)


def _pooled(tables: Sequence[Floats]) -> tuple[float, float, int]:
    """(variance of seeds, residual variance, degrees of freedom between seeds) of tables (S, I) with the same items."""
    freedom, num_items = sum(len(table) - 1 for table in tables), tables[0].shape[1]
    between = sum((len(table) - 1) * float(table.mean(1).var(ddof=1)) for table in tables) / freedom
    residuals = [table - table.mean(1, keepdims=True) - table.mean(0) + table.mean() for table in tables]
    rest = sum(float((each**2).sum()) for each in residuals) / (freedom * max(1, num_items - 1))
    return between - rest / num_items, rest, freedom

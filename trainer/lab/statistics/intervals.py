"""Means over seeds and items, with intervals that keep their level even at three seeds.

The model of accuracies ``x[s, i]`` (S seeds × I items), and of paired differences between two variants, is the crossed
one, ``x = μ + seed_s + item_i + noise_si``: effects of the seed on all items, of the item on all seeds, and the rest.
The variance of the grand mean is then, in mean squares of the two-way analysis of variance,

    Var(mean) = MS_seed / (S·I)  +  max(0, MS_item − MS_noise) / (S·I)
                └ seeds and noise ┘  └ items: does not shrink with more seeds ┘

(Cornfield and Tukey 1956, Ann. Math. Stat. 27), and the interval is ``mean ± t(S − 1) · √Var``.

Why not the bootstrap: at few seeds a percentile interval is too narrow. Percent of "better or worse" on A versus A, in
2,000 simulated sweeps of 256 items (`tests/trainer/lab/statistics/test_calibration.py` measures them); wanted: ≤ 5:

    | seeds                                                         |    3 |    5 |   10 |
    |---------------------------------------------------------------|------|------|------|
    | this interval                                                 |  3.7 |  4.0 |  3.9 |
    | …, seeds differing four times as much                         |  5.0 |  5.5 |  5.1 |
    | …, variants right on other items                              |  0.8 |  1.9 |  3.2 |
    | t interval of the seeds' means                                |  5.0 |  4.4 |  4.2 |
    | …, variants right on other items                              |  6.5 |  6.7 | 11.9 |
    | percentile bootstrap of the seeds                             | 25.8 | 15.7 | 11.0 |
    | hierarchical percentile bootstrap                             |  3.7 |  2.7 |  1.7 |
    | …, seeds differing four times as much                         | 20.3 | 14.7 |  9.6 |

"Right on other items": equal in the mean over the population that the items are drawn from, but not item by item. The
hierarchical bootstrap counts the items' noise about three times, which hides that it counts the seeds' too little. This
interval is never narrower than the t interval of the seeds' means, which is exact where these are normal: hence ≤ 5 %.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.errors import Refusal
from evenkeel.trainer.evaluation.shares import CONFIDENCE, Estimate

Floats = NDArray[np.float64]


class StatisticsError(Refusal):
    """Data that cannot be compared as asked."""


def variance_parts(values: Floats) -> tuple[Floats, Floats]:
    """``(seed_variance, item_variance)`` of values (…, S, I), each (…,); see the module's formula.

    ``seed_variance = MS_seed / I`` is the plain variance of the seeds' means (ddof = 1);
    ``item_variance = max(0, MS_item − MS_noise) / (S·I)``. S ≥ 2; with I = 1 the items' part is 0.
    """
    seeds, items = values.shape[-2:]
    seed_variance = values.mean(-1).var(-1, ddof=1)
    if items == 1:
        return seed_variance, np.zeros_like(seed_variance)
    between_items = values.mean(-2).var(-1, ddof=1)
    # what neither the seed nor the item explains
    residuals = values - values.mean(-1, keepdims=True) - values.mean(-2, keepdims=True)
    residuals += values.mean((-1, -2), keepdims=True)
    noise = (residuals**2).sum((-1, -2)) / ((seeds - 1) * (items - 1))
    return seed_variance, np.maximum(between_items - noise / seeds, 0.0) / items


def mean_estimate(values: ArrayLike) -> Estimate:
    """Mean over seeds and items with its interval, of values (S,) or (S, I).

    Items with a NaN in any seed are left out, so that all seeds are scored on the same ones.

    Raises:
        StatisticsError: no seeds, or no item that all seeds were scored on.
    """
    table = np.asarray(values, float)
    per_item = table.ndim == 2
    table = table if per_item else table[:, None]
    complete = ~np.isnan(table).any(0)
    if not len(table) or not complete.any():
        raise StatisticsError(
            f"{len(table)} seeds × {table.shape[1]} items hold no item that every seed was scored on."
        )
    table = table[:, complete]
    num_items = table.shape[1] if per_item else None
    value = float(table.mean())
    if len(table) == 1:
        return Estimate(value, math.nan, math.nan, 1, num_items, math.nan, math.nan)
    seed_variance, item_variance = (float(part) for part in variance_parts(table))
    from scipy import stats

    error = math.sqrt(seed_variance / len(table) + item_variance)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(table) - 1)) * error
    return Estimate(value, value - half, value + half, len(table), num_items, seed_variance, item_variance)


def paired_difference(variant: ArrayLike, baseline: ArrayLike) -> Estimate:
    """`mean_estimate` of ``variant − baseline``, both (S,) or (S, I): row s of both had the same seed, column i the
    same item.

    Pairing takes out what a seed (data order) and an item (difficulty) do to both variants alike.

    Raises:
        StatisticsError: the shapes differ, or nothing was scored in both.
    """
    left, right = np.asarray(variant, float), np.asarray(baseline, float)
    if left.shape != right.shape:
        raise StatisticsError(
            f"Paired arrays must have equal shapes (seeds, items), not {left.shape} and {right.shape}."
        )
    return mean_estimate(left - right)

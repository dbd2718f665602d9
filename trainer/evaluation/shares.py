"""Estimates with intervals; for a share of one run's items Wilson's score interval (1927, JASA 22).

The interval of a share does not cover the variation between seeds.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval.

    Attributes:
        value, low, high: in the unit of the data; ``low`` and ``high`` are NaN if there is one seed and no interval.
        num_seeds, num_items: sample sizes; ``num_items`` is ``None`` if only one value per seed is known.
        seed_variance: variance of the seeds' means around the true mean, including sampling noise of the items.
        item_variance: contribution of the choice of items to the variance of the mean, for any number of seeds.
    """

    value: float
    low: float
    high: float
    num_seeds: int
    num_items: int | None
    seed_variance: float
    item_variance: float

    @property
    def standard_error(self) -> float:
        """``√(seed_variance / S + item_variance)``."""
        return math.sqrt(self.seed_variance / self.num_seeds + self.item_variance)

    def __neg__(self) -> "Estimate":
        """Of the values with the other sign."""
        return replace(self, value=-self.value, low=-self.high, high=-self.low)

    @property
    def p_value(self) -> float:
        """Two-sided p of "the mean is 0", from ``t = value / standard_error`` with S − 1 degrees of freedom."""
        if self.num_seeds < 2:
            return math.nan
        if self.standard_error == 0:
            return 1.0 if self.value == 0 else 0.0
        return float(2 * special.stdtr(self.num_seeds - 1, -abs(self.value) / self.standard_error))


def share_estimate(values: ArrayLike, completions: int) -> Estimate:
    """Mean of the items' values with Wilson's score interval at the items' effective number.

    With mean p and variance s² of the n values, ``n_eff = n · p(1 − p) / s²``: the number of yes-or-no items that
    would give the mean the same variance. For values of 0 and 1, s² = p(1 − p) and this is Wilson's interval itself.
    n_eff is at most ``completions``, and n if all values are 0 or all are 1. The interval is over items: it contains
    the mean of the population that the items were drawn from in about 95 % of draws. Source of the effective number:
    Korn and Graubard, Survey Methodology 24 (1998) 193.

    Args:
        values: (n,), each in [0, 1]; NaN = not scored, left out. If all are, the result is NaN.
        completions: number of completions from which the values were computed.
    """
    given = np.asarray(values, float)
    scored = given[~np.isnan(given)]
    if not len(scored):
        return Estimate(math.nan, math.nan, math.nan, 1, 0, math.nan, math.nan)
    mean, variance = float(scored.mean()), float(scored.var())
    binomial = mean * (1 - mean)
    if binomial == 0:
        number = float(len(scored))
    else:
        number = min(len(scored) * binomial / variance, completions) if variance > 0 else float(completions)
    return _wilson(mean, number, len(scored))


def _wilson(share: float, number: float, items: int) -> Estimate:
    """``(p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n)``; clipped to [0, 1] and to contain p."""
    z = float(special.ndtri((1 + CONFIDENCE) / 2))
    weight = z**2 / number
    center = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / number + weight / (4 * number)) / (1 + weight)
    low, high = max(0.0, min(share, center - half)), min(1.0, max(share, center + half))
    return Estimate(share, low, high, 1, items, math.nan, math.nan)

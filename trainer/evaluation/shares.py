"""An estimate with its interval; of a share of one run's items Wilson's score interval (1927, JASA 22).

The interval of a share says nothing about other seeds.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval.

    Attributes:
        value, low, high: in the unit of the data; ``low`` and ``high`` are NaN where one seed has no spread to show.
        num_seeds, num_items: how many it rests on; ``num_items`` is ``None`` where only one value per seed is known.
        seed_variance: variance of the seeds' means around the true mean: sampling noise of the items included.
        item_variance: what the choice of items adds to the variance of the mean, whatever the number of seeds.
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

    @property
    def p_value(self) -> float:
        """Two-sided p of "the mean is 0", from ``t = value / standard_error`` with S − 1 degrees of freedom."""
        if self.num_seeds < 2:
            return math.nan
        if self.standard_error == 0:
            return 1.0 if self.value == 0 else 0.0
        return float(2 * stats.t.sf(abs(self.value) / self.standard_error, self.num_seeds - 1))


def share_estimate(values: ArrayLike, completions: int) -> Estimate:
    """Mean of the items' values with Wilson's score interval at the items' effective number.

    With mean p and variance s² of the n values, ``n_eff = n · p(1 − p) / s²``: as many yes-or-no items as would leave
    the mean as uncertain as these. For values of 0 and 1, s² = p(1 − p) and this is Wilson's interval itself. n_eff is
    at most ``completions``, and n where all values are 0 or all are 1. The interval is over items: it holds the mean of
    the population that the items were drawn from in about 95 % of draws. Source of the effective number: Korn and
    Graubard, Survey Methodology 24 (1998) 193.

    Args:
        values: (n,), each in [0, 1]; NaN = not scored, left out. Of none the value and both ends are NaN.
        completions: from which the values were computed.
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
    """``(p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n)``; rounding never leaves the share outside."""
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    weight = z**2 / number
    centre = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / number + weight / (4 * number)) / (1 + weight)
    low, high = max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
    return Estimate(share, low, high, 1, items, math.nan, math.nan)

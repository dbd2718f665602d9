"""Power of a planned sweep, computed for the test that its verdicts use.

The verdict excludes 0 from ``mean ± t_{S−1} · √(v/S + w)``, where v, the variance of the seeds' mean differences, and
w, what the items add, are estimated from S seeds × I items (`trainer.lab.statistics.intervals`). With the variances
known (from a pilot) its power at a true difference Δ is therefore

    E[ Φ((Δ − t·e) / SE) + Φ((−Δ − t·e) / SE) ],      e = √(v̂/S + ŵ),   SE = √(v/S + w)
    v̂ = v · χ²_{S−1} / (S − 1),    ŵ = max(0, normal with the mean w and the variance of the mean squares' difference)

over v̂ and ŵ, taken at equally likely points (the variance of a mean square is 2 · its square / its degrees
of freedom). With w = 0 and many items this is the non-central t.
"""

import math

import numpy as np
from scipy import optimize, special, stats

from evenkeel.trainer.evaluation.shares import CONFIDENCE
from evenkeel.trainer.lab.statistics.components import DifferenceComponents
from evenkeel.trainer.lab.statistics.intervals import Floats
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS, POWER, fewest_seeds

_POINTS = (np.arange(200) + 0.5) / 200
_ITEM_POINTS = (np.arange(40) + 0.5) / 40


def verdict_power(difference: float, components: DifferenceComponents, num_seeds: int, num_items: int) -> float:
    """Probability that the verdict is "better" or "worse" at a true ``difference``; 0 with fewer than three seeds."""
    if num_seeds < FEWEST_SEEDS:
        return 0.0
    error = components.standard_error(num_seeds, num_items)
    if error == 0:
        return float(difference != 0)
    widths = _half_widths(components, num_seeds, num_items)
    return _exceeding(difference / error, widths / error)


def _exceeding(effect: float, limits: Floats) -> float:
    """P(|mean| > limit) in units of the standard error, over equally likely ``limits``."""
    return float((special.ndtr(effect - limits) + special.ndtr(-effect - limits)).mean())


def _half_widths(components: DifferenceComponents, num_seeds: int, num_items: int) -> Floats:
    """Half widths of the intervals of sweeps of this size at equally likely points, one-dimensional."""
    freedom, rest = num_seeds - 1, components.seed_items
    t = stats.t.ppf((1 + CONFIDENCE) / 2, freedom)
    of_seeds = components.seed_variance(num_items) / num_seeds * stats.chi2.ppf(_POINTS, freedom) / freedom
    if num_items == 1:
        return np.asarray(t * np.sqrt(of_seeds))
    between, within = 2 / (num_items - 1), 2 / (freedom * (num_items - 1))
    spread = math.sqrt(between * (rest + num_seeds * components.items) ** 2 + within * rest**2)
    of_items = components.items / num_items + stats.norm.ppf(_ITEM_POINTS) * spread / (num_seeds * num_items)
    return np.asarray(t * np.sqrt(of_seeds[:, None] + np.maximum(0.0, of_items)).ravel())


def detectable_difference(components: DifferenceComponents, num_seeds: int, num_items: int) -> float:
    """The smallest true difference that the verdict finds in 80 % of sweeps; infinite below three seeds."""
    if num_seeds < FEWEST_SEEDS:
        return math.inf
    error = components.standard_error(num_seeds, num_items)
    if error == 0:
        return 0.0
    limits, most = _half_widths(components, num_seeds, num_items) / error, 4.0

    def above(effect: float) -> float:
        return _exceeding(effect, limits) - POWER

    while above(most) < 0:
        most *= 2
    return error * float(optimize.brentq(above, 0.0, most, xtol=1e-3))


def planned_seeds(difference: float, components: DifferenceComponents, num_items: int) -> int | None:
    """The fewest seeds with which the verdict finds ``difference`` in 80 % of sweeps.

    ``None`` where more than 1,000 would be needed: often no number is enough, because the items stay the same.
    """
    return fewest_seeds(lambda seeds: verdict_power(difference, components, seeds, num_items))


def uncertainty(freedom: int) -> tuple[float, float]:
    """Factors of an estimated standard deviation between which the true one lies, by χ² of ``freedom`` degrees.

    Two degrees of freedom give 0.52 … 6.3, ten give 0.70 … 1.75.
    """
    low, high = stats.chi2.ppf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], freedom)
    return math.sqrt(freedom / high), math.sqrt(freedom / low)

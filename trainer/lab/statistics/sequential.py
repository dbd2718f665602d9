"""Several looks at the seeds of a comparison: how strict each must be so that all together err in 5 % at most.

Who tests after 3, 4 and 5 seeds at 5 % each, and stops when one says so, is wrong in more than 5 % of comparisons of
equals. A group-sequential test spends the 5 % over the looks. Here by the spending function of O'Brien–Fleming type,

    α(t) = 4 − 4 Φ(z_{1 − α/4} / √t)          t = n / N, the share of the seeds seen at a look

(Lan and DeMets 1983, Biometrika 70, 659: their α₁* with α/2 for each of "better" and "worse"): next to nothing at
first, nearly all at the last look, so that the last one is almost as sharp as a test without looks. The limits c_k
follow from

    P(|T_1| < c_1, …, |T_{k−1}| < c_{k−1}, |T_k| ≥ c_k) = α(t_k) − α(t_{k−1})

with T_k the t statistic of the first n_k seeds. Seeds are few, and the normal's limits would err in up to 5.8 %, so
the joint distribution is that of the t statistics themselves (as in Jennison and Turnbull 1991, Biometrika 78). For n
equal normal seeds let B_n = cos of the angle between them and (1, …, 1): T² = (n − 1) B² / (1 − B²). Their direction is
uniform on the sphere, whatever their length, so that the B_n are a Markov chain:

    B_{n+m} = (√n · B_n · cos θ + √m · B'_m · sin θ) / √(n + m),     cos² θ ~ Beta(n/2, m/2)

with B'_m that of the m new seeds alone, which is integrated from look to look (Armitage, McPherson and Rowe 1969, J. R.
Statist. Soc. A 132). What the choice of items adds to a difference is shared by all looks and only makes them more
alike: the limits then err to the safe side.

The interval of look k at confidence 1 − level_k holds the truth at all looks together in 95 % (repeated confidence
intervals: Jennison and Turnbull 1989, J. R. Statist. Soc. B 51), whether or not anybody stops.
"""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from evenkeel.trainer.evaluation.shares import CONFIDENCE, Estimate
from evenkeel.trainer.lab.statistics.intervals import StatisticsError

Floats = NDArray[np.float64]
ALPHA = 1 - CONFIDENCE
_LEGENDRE = {count: np.polynomial.legendre.leggauss(count) for count in (32, 40, 180)}
_BINS = 120
_TAIL = 1e-12
_LEAST_ALPHA = 1e-9


def spent_alpha(fraction: float, alpha: float = ALPHA) -> float:
    """α(t) of O'Brien–Fleming type for 0 < t ≤ 1; α itself at t = 1."""
    return float(4 * stats.norm.sf(stats.norm.isf(alpha / 4) / math.sqrt(fraction)))


def look_levels(looks: Sequence[int], alpha: float = ALPHA) -> list[float]:
    """The two-sided level of the t test at each look; ``looks`` are numbers of seeds from 2 on, the last of them all.

    Looks at 3, 4 and 5 seeds: 0.0076, 0.0186, 0.0362. A single look has the level α.

    Raises:
        StatisticsError: looks are not increasing from two.
    """
    if not looks or looks[0] < 2 or any(after <= before for before, after in itertools.pairwise(looks)):
        raise StatisticsError(f"Looks are increasing numbers of seeds, at least 2, not {list(looks)}.")
    return list(_levels(tuple(looks), looks[-1], alpha))


@lru_cache(maxsize=1024)
def _levels(looks: tuple[int, ...], total: int, alpha: float) -> tuple[float, ...]:
    """Levels of the first looks of a schedule that ends at ``total``; ``mass`` is what was not decided, over |B|."""
    spent = [spent_alpha(look / total, alpha) for look in looks]
    levels, seen = [spent[0]], looks[0]
    limit = _cosine(spent[0], seen)
    edges = np.linspace(0.0, limit, _BINS + 1)
    cosines, mass = (edges[1:] + edges[:-1]) / 2, np.diff(1 - _p_of_cosine(edges, seen))
    for look, before, after in zip(looks[1:], spent, spent[1:], strict=False):
        old, new, chances = _mixture(seen, look - seen)
        reached = np.abs(cosines[:, None] * old + new).ravel()
        weights = (mass[:, None] * chances).ravel()
        limit = _upper_quantile(reached, weights, after - before)
        levels.append(float(_p_of_cosine(np.array(limit), look)))
        inside = reached < limit
        cosines, mass = _binned(reached[inside], weights[inside], limit)
        seen = look
    return tuple(levels)


def _mixture(seen: int, added: int) -> tuple[Floats, Floats, Floats]:
    """Points of ``√n cos θ / √(n+m)`` and ``√m B' sin θ / √(n+m)`` with their probabilities, all flat."""
    most = math.pi / 2 - _tail_angle(seen, added)
    angles, chances = _points(_tail_angle(added, seen), most, 180 if added == 1 else 40)
    chances = chances * np.cos(angles) ** (seen - 1) * np.sin(angles) ** (added - 1)
    if added == 1:
        of_new, chances_of_new = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    else:
        most = math.pi / 2 - _tail_angle(added - 1, 1)
        tilts, chances_of_new = _points(-most, most, 32)
        of_new, chances_of_new = np.sin(tilts), chances_of_new * np.cos(tilts) ** (added - 2)
    both = chances[:, None] * chances_of_new
    old = math.sqrt(seen / (seen + added)) * np.cos(angles)[:, None] * np.ones_like(of_new)
    new = math.sqrt(added / (seen + added)) * np.sin(angles)[:, None] * of_new
    return old.ravel(), new.ravel(), (both / both.sum()).ravel()


def _tail_angle(of: int, others: int) -> float:
    """The angle whose sine² a Beta(of/2, others/2) hardly ever stays below; 0 where the density is largest there."""
    return 0.0 if of == 1 else math.asin(math.sqrt(stats.beta.ppf(_TAIL, of / 2, others / 2)))


def _points(least: float, most: float, count: int) -> tuple[Floats, Floats]:
    """Nodes and weights of an integral from ``least`` to ``most``."""
    nodes, weights = _LEGENDRE[count]
    return (least + most) / 2 + (most - least) / 2 * nodes, (most - least) / 2 * weights


def _upper_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The value that is reached with probability ``share``."""
    order = np.argsort(-values)
    above = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share, above, values[order]))


def _binned(values: Floats, weights: Floats, limit: float) -> tuple[Floats, Floats]:
    """Points from 0 to ``limit`` put on evenly spaced ones, each on its two neighbours so that the mean stays."""
    place = values / limit * (_BINS - 1)
    left = np.minimum(place.astype(int), _BINS - 2)
    right_share = place - left
    mass = np.zeros(_BINS)
    np.add.at(mass, left, weights * (1 - right_share))
    np.add.at(mass, left + 1, weights * right_share)
    return np.linspace(0.0, limit, _BINS), mass


def _cosine(level: float, seeds: int) -> float:
    """B at the limit of a two-sided t test of ``level``: ``t / √(t² + n − 1)``, by the Beta distribution of B²."""
    return float(np.sqrt(stats.beta.isf(level, 0.5, (seeds - 1) / 2)))


def _p_of_cosine(cosine: Floats, seeds: int) -> Floats:
    """P(|B_n| ≥ cosine) = the two-sided p of its t; B² ~ Beta(1/2, (n − 1)/2)."""
    return np.asarray(stats.beta.sf(cosine**2, 0.5, (seeds - 1) / 2))


def sequential_p(p_values: Sequence[float], looks: Sequence[int]) -> float:
    """The smallest α at which one of the looks taken would have decided: a p-value at whichever look one stops.

    ``inf {α : p_j ≤ level_j(α) at some look j taken}``. One that is no greater than α comes out in at most α of
    comparisons of equals, so that Holm's method may be applied to several. Source: Liu and Anderson 2008, J. Am. Stat.
    Assoc. 103.

    Args:
        p_values: of the looks taken, each as of a test without looks; NaN decides nothing.
        looks: all planned numbers of seeds.
    """
    found = 1.0
    for taken, p in enumerate(p_values, start=1):
        if not p < found:  # no look decides at a smaller α than its own p
            continue

        def excess(log_alpha: float, taken: int = taken, p: float = p) -> float:
            return _levels(tuple(looks[:taken]), looks[-1], math.exp(log_alpha))[-1] - p

        least, most = math.log(_LEAST_ALPHA), math.log(found)
        if excess(least) >= 0:
            return _LEAST_ALPHA
        if excess(most) > 0:
            found = math.exp(optimize.brentq(excess, least, most, xtol=1e-4))
    return found


def predictive_power(difference: Estimate, total: int, level: float) -> float:
    """Chance that ``total`` seeds will tell the variants apart at ``level``, given what the seeds so far say.

    The seeds that are still to come scatter about the mean of those seen as these did, and as this mean is uncertain:

        mean at N ~ mean + t_{n−1} · √(seed_variance · (N − n) / (n·N)),    told apart beyond t_{level/2, N−1} · SE_N

    with ``SE_N = √(seed_variance / N + item_variance)`` as estimated now. Source: Spiegelhalter, Freedman and Blackburn
    1986, Control. Clin. Trials 7, with t for the unknown variance. Looks between now and then are not counted.
    """
    seen = difference.num_seeds
    error = math.sqrt(difference.seed_variance / total + difference.item_variance)
    limit = float(stats.t.isf(level / 2, total - 1)) * error
    spread = math.sqrt(difference.seed_variance * (total - seen) / (seen * total))
    if spread == 0:
        return float(abs(difference.value) > limit)
    above, below = (limit - difference.value) / spread, (-limit - difference.value) / spread
    return float(stats.t.sf(above, seen - 1) + stats.t.cdf(below, seen - 1))

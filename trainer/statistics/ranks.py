"""Whether two lists of numbers have the same order."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from trainer.statistics.intervals import CONFIDENCE, StatisticsError
from trainer.statistics.permutation import MOST_ARRANGEMENTS

Floats = NDArray[np.float64]
FEWEST = 4
"""Pairs below which the interval's formula divides by 0."""


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's ρ of n pairs, its interval, and the two-sided p of "no relation"."""

    value: float
    low: float
    high: float
    p_value: float
    pairs: int


def rank_correlation(
    first: ArrayLike, second: ArrayLike, seed: int = 0, confidence: float = CONFIDENCE
) -> RankCorrelation:
    """Spearman's ρ of two lists (n,), equal values sharing their mean rank; NaN throughout if one list is constant.

    The interval is ``tanh(artanh ρ ± z √((1 + ρ²/2) / (n − 3)))`` (Bonett and Wright 2000, Psychometrika 65), which
    holds its level from ten pairs or so on. It takes the pairs for a sample of all there might be; noise in their
    numbers draws ρ towards 0. ``p`` is the share of permutations of one list with a |ρ| as large: of all of them up to
    eight pairs, else of `MOST_ARRANGEMENTS` drawn ones, the observed one counted with them.

    Raises:
        StatisticsError: lists of different lengths, fewer than four pairs, or a value that is no number.
    """
    left, right = np.asarray(first, float), np.asarray(second, float)
    if left.shape != right.shape or left.ndim != 1 or len(left) < FEWEST or not np.isfinite([left, right]).all():
        raise StatisticsError(
            f"A rank correlation is of two lists of equally many numbers, {FEWEST} at least, not of shapes "
            f"{left.shape} and {right.shape} or with values that are no number. Leave such pairs out."
        )
    ranks = [stats.rankdata(values) for values in (left, right)]
    centred = [(each - each.mean()) / math.sqrt(((each - each.mean()) ** 2).sum() or math.nan) for each in ranks]
    value = float(np.clip(centred[0] @ centred[1], -1, 1))
    if math.isnan(value):
        return RankCorrelation(math.nan, math.nan, math.nan, math.nan, len(left))
    error = float(stats.norm.ppf((1 + confidence) / 2)) * math.sqrt((1 + value**2 / 2) / (len(left) - 3))
    centre = math.atanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    low, high = math.tanh(centre - error), math.tanh(centre + error)
    return RankCorrelation(value, low, high, _permutation_p(centred[0], centred[1], value, seed), len(left))


def _permutation_p(left: Floats, right: Floats, value: float, seed: int) -> float:
    count = len(left)
    drawn = math.factorial(count) > 50_000
    orders = (
        np.random.default_rng(seed).permuted(np.tile(right, (MOST_ARRANGEMENTS, 1)), axis=1)
        if drawn
        else np.array([right[list(order)] for order in itertools.permutations(range(count))])
    )
    extreme = int((np.abs(orders @ left) >= abs(value) - 1e-9).sum())
    return (extreme + drawn) / (len(orders) + drawn)

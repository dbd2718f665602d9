"""Spearman's ρ with its interval and permutation p."""

import math

import numpy as np
import pytest
from scipy import stats

from trainer.statistics import StatisticsError, rank_correlation


def test_by_hand():
    """Ranks 1 2 3 4 5 against 2 1 4 3 5: Σ d² = 4, ρ = 1 − 6·4 / (5·24) = .8; s = √((1 + .32) / 2)."""
    found = rank_correlation([10, 20, 30, 40, 50], [2, 1, 7, 5, 90])
    assert found.value == pytest.approx(0.8)
    error = 1.959964 * math.sqrt(1.32 / 2)
    assert found.low == pytest.approx(math.tanh(math.atanh(0.8) - error))
    assert found.high == pytest.approx(math.tanh(math.atanh(0.8) + error))
    # |ρ| ≥ .8 where Σ d² ≤ 4 or ≥ 36: 1 + 4 + 3 permutations of 120 (d² = 0; 2; 4), and as many mirrored
    assert found.p_value == pytest.approx(16 / 120)
    assert found.pairs == 5


def test_scipys_with_ties_and_drawn_permutations():
    random = np.random.default_rng(0)
    left, right = random.integers(0, 5, 14), random.integers(0, 5, 14)
    found, reference = rank_correlation(left, right), stats.spearmanr(left, right)
    assert found.value == pytest.approx(reference.statistic)
    assert found.p_value == pytest.approx(reference.pvalue, abs=0.03)  # scipy's is of the t distribution


def test_the_interval_holds_its_level():
    """Of 400 samples of 12 pairs from a normal with r = .7, whose ρ is (6/π) asin(r/2) = .6829."""
    random, held = np.random.default_rng(1), 0
    for _ in range(400):
        first, noise = random.normal(size=(2, 12))
        values = 0.7 * first + math.sqrt(1 - 0.49) * noise
        found = _without_p(first, values)
        held += found[0] <= 6 / math.pi * math.asin(0.35) <= found[1]
    assert 0.92 <= held / 400 <= 0.985


def _without_p(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    from trainer.statistics import ranks

    drawn, ranks.MOST_ARRANGEMENTS = ranks.MOST_ARRANGEMENTS, 10
    try:
        found = rank_correlation(first, second)
    finally:
        ranks.MOST_ARRANGEMENTS = drawn
    return found.low, found.high


def test_one_order_and_none():
    same = rank_correlation(range(9), range(9))
    assert same.value == pytest.approx(1)
    assert same.low > 0.99
    assert same.p_value < 1e-4
    assert math.isnan(rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]).value)
    for left, right in (([1, 2, 3], [1, 2, 3]), ([1, 2, 3, math.nan], [1, 2, 3, 4]), ([1, 2, 3, 4], [1, 2, 3, 4, 5])):
        with pytest.raises(StatisticsError, match="Leave such pairs out"):
            rank_correlation(left, right)

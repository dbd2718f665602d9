"""Several looks at one comparison: false verdicts stay at 5 % however often one looks."""

import numpy as np
import pytest
from scipy import stats

from evenkeel.trainer.lab.statistics import (
    StatisticsError,
    look_levels,
    mean_estimate,
    predictive_power,
    sequential_p,
)
from evenkeel.trainer.lab.statistics.sequential import spent_alpha


def test_of_many_seeds_five_equal_looks_have_the_published_limits():
    """DeMets and Lan 1994 (Statist. Med. 13) for O'Brien–Fleming type, two-sided 5 %: 4.88, 3.36, 2.68, 2.29, 2.03."""
    limits = stats.norm.isf(np.array(look_levels([200, 400, 600, 800, 1000])) / 2)
    assert limits == pytest.approx([4.88, 3.36, 2.68, 2.29, 2.03], abs=0.005)


def test_the_first_look_has_what_is_spent_there():
    """α(.6) = 4 − 4 Φ(2.2414/.7746) = 4 (1 − Φ(2.8936)) = .00762"""
    assert look_levels([3, 5])[0] == spent_alpha(0.6) == pytest.approx(0.00762, abs=1e-5)


@pytest.mark.parametrize("looks", [[], [1, 3], [3, 3], [5, 3]])
def test_looks_increase(looks: list[int]):
    with pytest.raises(StatisticsError, match="increasing"):
        look_levels(looks)


@pytest.mark.parametrize("looks", [[3, 4, 5], [4, 6, 8, 10]])
def test_all_looks_together_err_in_five_percent(looks: list[int]):
    """And at each in what it may: few normal seeds, 200,000 comparisons of equals; 0.2 % are four standard errors."""
    seeds = np.random.default_rng(0).normal(size=(100_000, looks[-1]))
    undecided = np.ones(len(seeds), bool)
    for look, level in zip(looks, look_levels(looks), strict=True):
        seen = seeds[:, :look]
        statistic = np.abs(seen.mean(1)) / np.sqrt(seen.var(1, ddof=1) / look)
        undecided &= statistic < stats.t.isf(level / 2, look - 1)
        assert 1 - undecided.mean() == pytest.approx(spent_alpha(look / looks[-1]), abs=0.002)


@pytest.mark.parametrize("looks", [[3, 5], [3, 4, 5]])
def test_a_sequential_p_is_the_level_at_which_a_look_decides(looks: list[int]):
    """p exactly at a look's limit for α = 5 %: decided there at 5 % and no less."""
    levels = look_levels(looks)
    for taken in range(1, len(looks) + 1):
        p_values = [0.9] * (taken - 1) + [levels[taken - 1]]
        assert sequential_p(p_values, looks) == pytest.approx(0.05, abs=1e-4)
    assert sequential_p([1.0, 1.0], looks) == 1.0
    assert sequential_p([0.0], looks) <= 1e-9
    assert sequential_p([float("nan"), 0.04], looks) == sequential_p([1.0, 0.04], looks)


def test_a_later_look_takes_nothing_back():
    assert sequential_p([0.001, 0.9], [3, 5]) == sequential_p([0.001], [3, 5]) < 0.05


def test_predictive_power_is_the_share_of_ends_that_decide():
    """3 of 5 seeds, standard deviation .02, and ends drawn as the formula says they come."""
    seen = mean_estimate([0.01, 0.03, 0.05])
    rng = np.random.default_rng(0)
    ends = 0.03 + stats.t.rvs(2, size=200_000, random_state=rng) * np.sqrt(0.02**2 * 2 / 15)
    limit = stats.t.isf(0.048 / 2, 4) * np.sqrt(0.02**2 / 5)
    assert predictive_power(seen, 5, 0.048) == pytest.approx((np.abs(ends) > limit).mean(), abs=0.005)

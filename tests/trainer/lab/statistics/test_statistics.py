"""Numbers whose arithmetic is written beside them, independent references, and invariants."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenkeel.trainer.lab.reports.accuracies import area_under_curve
from evenkeel.trainer.lab.statistics.intervals import StatisticsError, mean_estimate, paired_difference, variance_parts
from evenkeel.trainer.lab.statistics.verdict import holm_adjusted

TABLES = st.integers(2, 6).flatmap(
    lambda seeds: st.integers(2, 8).flatmap(
        lambda items: st.lists(st.lists(st.booleans(), min_size=items, max_size=items), min_size=seeds, max_size=seeds)
    )
)


def test_curves_in_one_number_each():
    curves = [[0.4, 0.6, 0.5], [0.2, 0.4, 0.8]]
    # (0.5·10 + 0.55·30)/40 = 0.5375 and (0.3·10 + 0.6·30)/40 = 0.525
    assert area_under_curve(curves, [0, 10, 40]) == pytest.approx([0.5375, 0.525])
    assert area_under_curve([[0.7, 0.7]], [3, 9]) == pytest.approx([0.7])
    assert np.isnan(area_under_curve([[0.7]], [3])).all()


def test_the_interval_of_seeds_alone_is_students():
    values = [0.80, 0.84, 0.85, 0.79, 0.87]
    estimate = mean_estimate(values)
    reference = stats.ttest_1samp(values, 0.8)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(reference.confidence_interval()))
    assert estimate.num_items is None
    assert mean_estimate(np.array(values) - 0.8).p_value == pytest.approx(reference.pvalue)


def test_items_widen_the_interval_where_the_variants_are_right_on_different_ones():
    """Every seed: +1 on item 1, 0 on items 2 and 3, by hand: no spread of seeds, all of it between items."""
    differences = np.array([[1.0, 0.0, 0.0]] * 3)
    estimate = mean_estimate(differences)
    assert estimate.seed_variance == 0
    # MS_item = 3 · Var([1, 0, 0]) = 3 · 1/3 = 1, MS_noise = 0; item_variance = 1 / 9; t_{0.975, 2} = 4.302653
    assert estimate.item_variance == pytest.approx(1 / 9)
    assert estimate.low == pytest.approx(1 / 3 - 4.302653 / 3, abs=1e-6)


def test_mean_squares_are_those_of_the_two_way_analysis_of_variance():
    """3 seeds × 2 items by hand: seed means 2, 3, 7; item means 3, 5; grand mean 4."""
    seed_variance, item_variance = variance_parts(np.array([[1.0, 3.0], [3.0, 3.0], [5.0, 9.0]]))
    assert seed_variance == pytest.approx(7)  # ((−2)² + (−1)² + 3²) / 2
    # Residuals x − seed − item + grand: [0, 0], [1, −1], [−1, 1]: 4 / (2 · 1) = 2; MS_item = 3 · (1 + 1) / 1 = 6
    assert item_variance == pytest.approx((6 - 2) / 6)


def test_an_item_that_one_seed_was_not_scored_on_is_left_out_for_all():
    table = [[1.0, 0.0, math.nan], [1.0, 1.0, 0.0]]
    assert mean_estimate(table).value == pytest.approx(0.75)
    assert mean_estimate(table).num_items == 2
    with pytest.raises(StatisticsError, match="no item that every seed was scored on"):
        mean_estimate([[math.nan, 1.0], [0.0, math.nan]])


def test_arrays_that_do_not_pair_are_refused():
    with pytest.raises(StatisticsError, match=r"not \(3,\) and \(2,\)"):
        paired_difference([1, 2, 3], [1, 2])


@given(TABLES)
def test_a_difference_turned_round_is_the_same_interval_turned_round(rows: list[list[bool]]):
    variant = np.array(rows, float)
    baseline = np.roll(variant, 1, axis=1)
    forth = paired_difference(variant, baseline)
    back = paired_difference(baseline, variant)
    assert (forth.low, forth.high) == pytest.approx((-back.high, -back.low), abs=1e-12)
    assert forth.value == pytest.approx((variant - baseline).mean())


@given(TABLES)
def test_knowing_the_items_never_narrows_the_interval(rows: list[list[bool]]):
    table = np.array(rows, float)
    per_item, seeds_alone = mean_estimate(table), mean_estimate(table.mean(1))
    assert per_item.high - per_item.low >= seeds_alone.high - seeds_alone.low - 1e-12


def test_holm_by_hand():
    # sorted 0.01, 0.03, 0.04: 3 · 0.01, 2 · 0.03, then at least as much as the one before
    assert holm_adjusted([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    adjusted = holm_adjusted([math.nan, 0.02, 0.9])
    assert math.isnan(adjusted[0])
    assert adjusted[1:] == pytest.approx([0.04, 0.9])
    with pytest.raises(StatisticsError, match=r"0 … 1"):
        holm_adjusted([1.2])

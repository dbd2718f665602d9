"""What is said of a difference, and what never is."""

from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.statistics.intervals import mean_estimate
from evenkeel.trainer.lab.statistics.verdict import seeds_needed, verdict

ACCURACIES = st.floats(-1, 1, allow_nan=False).map(lambda value: round(value, 3))


def test_better_and_worse_only_when_the_interval_excludes_0():
    # sd 0.01, S = 3: half width 4.303 · 0.01 / √3 = 0.0248
    assert verdict(mean_estimate([0.02, 0.03, 0.04])).outcome == "better"
    assert verdict(mean_estimate([-0.02, -0.03, -0.04])).outcome == "worse"
    assert verdict(mean_estimate([0.01, 0.02, 0.03])).outcome == "not distinguishable"
    assert verdict(mean_estimate([0.25, 0.25, 0.25])).outcome == "no verdict"  # no spread


@given(st.lists(ACCURACIES, min_size=1, max_size=2))
def test_fewer_than_three_seeds_give_no_verdict(differences: list[float]):
    found = verdict(mean_estimate(differences))
    assert found.outcome == "no verdict"


def test_how_many_seeds_is_said_with_the_power_table():
    """Effect d/sd = 0.5, two-sided 5 %, power 0.8: 34 pairs (Cohen 1988; G*Power 3.1 gives the same)."""
    differences = mean_estimate([0.5 - 1, 0.5, 0.5 + 1])  # mean 0.5, sd 1
    assert seeds_needed(differences) == 34
    assert verdict(differences).seeds_needed == 34


def test_seeds_alone_do_not_make_up_for_few_items():
    """Value 0.01, endless seeds: √0.000025 = 0.005, power P(Z > 1.96 − 2) = 0.52 < 0.8: these items do not suffice.

    With endless items d/sd = 0.01/√0.0005 = 0.447: 2.8016² / 0.447² = 39.2 by the normal, and 1.92 more by the t: 41.2.
    """
    found = verdict(Estimate(0.01, -0.02, 0.04, 5, 256, 0.0005, 0.000025))
    assert found.seeds_needed is None
    assert "42 seeds" in found.sentence
    assert "256 items" in found.sentence


def test_seeds_that_agree_ask_for_items_alone():
    """+1 on one item of three for every seed: the seeds agree, and the items could have been others."""
    found = verdict(mean_estimate([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.1, 0.0]]))
    assert (found.seeds_needed, "more than 3 items" in found.sentence) == (None, True)


def test_a_number_of_seeds_has_two_digits():
    """d/sd = 0.02/√0.03 = 0.1155: 2.8016² / 0.01333 = 588.7 by the normal, 591 by the t."""
    found = verdict(Estimate(0.02, -0.1, 0.14, 5, None, 0.03, 0.0))
    assert seeds_needed(Estimate(0.02, -0.1, 0.14, 5, None, 0.03, 0.0)) == 591
    assert found.seeds_needed == 590


def test_a_small_difference_is_not_called_none():
    """sd 1, mean 0.0003: (2.8 / 0.0003)² seeds. To see no difference is not to see that there is none."""
    cases = ([0.0, 0.0, 0.0], [-1.0, 0.001, 1.0], [-0.5, 0.0, 0.5])
    none, *small = (verdict(mean_estimate(differences)) for differences in cases)
    assert {(found.outcome, found.seeds_needed) for found in (none, *small)} == {("not distinguishable", None)}
    assert none.sentence not in {found.sentence for found in small}


@given(st.lists(ACCURACIES, min_size=3, max_size=8))
def test_more_seeds_are_asked_for_than_there_are(differences: list[float]):
    found = verdict(mean_estimate(differences))
    assert found.seeds_needed is None or found.seeds_needed > len(differences)

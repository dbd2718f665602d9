"""The power that is promised before a sweep is the power that its verdicts then have."""

from typing import Any

import numpy as np
import pytest

from evenkeel.trainer.lab.statistics.components import DifferenceComponents, paired_components, unpaired_components
from evenkeel.trainer.lab.statistics.intervals import StatisticsError, paired_difference
from evenkeel.trainer.lab.statistics.planning import detectable_difference, planned_seeds, uncertainty, verdict_power
from evenkeel.trainer.lab.statistics.verdict import outcome_of, power
from tests.trainer.lab.statistics.simulated_sweeps import answers

DESIGNS: dict[str, dict[str, Any]] = {
    "as the quickstart": {},
    "seeds differ much": {"seed_sd": 1.0},
    "right on other items": {"own_items_sd": 1.0},
    "both": {"own_items_sd": 0.6, "seed_sd": 0.5},
    "few items": {"items": 30, "accuracy": 0.5},
}


def realised_power(sweeps: int, seeds: int, effect: float, **truth: Any) -> float:
    variants, baselines = answers(np.random.default_rng(1), sweeps=sweeps, seeds=seeds, effect=effect, **truth)
    told = [outcome_of(paired_difference(*both)) for both in zip(variants, baselines, strict=True)]
    return np.mean([outcome in ("better", "worse") for outcome in told])


def large_pilots(effect: float, **truth: Any) -> tuple[float, DifferenceComponents]:
    """What 30 sweeps of 40 seeds say together of the difference and its variances: as good as the truth."""
    variants, baselines = answers(np.random.default_rng(2), sweeps=30, seeds=40, effect=effect, **truth)
    found = [paired_components([(left, right)]) for left, right in zip(variants, baselines, strict=True)]
    names = ("seeds", "items", "seed_items")
    mean = [float(np.mean([getattr(each, name) for each in found])) for name in names]
    return float((variants - baselines).mean()), DifferenceComponents(*mean, freedom=39)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("effect", [0.15, 0.4, 0.8])
@pytest.mark.parametrize("truth", DESIGNS.values(), ids=DESIGNS)
def test_realised_power_is_the_predicted_one_to_a_tenth(truth: dict[str, Any], effect: float, seeds: int):
    """400 sweeps a design: the realised power itself is known to 0.05 (two standard errors)."""
    difference, components = large_pilots(effect, **truth)
    predicted = verdict_power(difference, components, seeds, truth.get("items", 256))
    assert predicted == pytest.approx(realised_power(400, seeds, effect, **truth), abs=0.1)


@pytest.mark.parametrize(("effect", "seeds"), [(1.0, 3), (2.0, 5), (3.0, 10)])
def test_without_items_it_is_the_power_of_the_t_test(effect: float, seeds: int):
    """σ = 0.02 between seeds alone: SE = 0.02/√S, and the non-central t knows the rest."""
    components = DifferenceComponents(0.02**2, 0.0, 0.0, freedom=4)
    difference = effect * 0.02 / np.sqrt(seeds)
    assert verdict_power(difference, components, seeds, 100) == pytest.approx(power(effect, seeds), abs=2e-3)


def test_components_are_those_that_the_data_were_made_of():
    """Seeds .03, items .1, seed × item .2 (standard deviations), 400 seeds × 400 items."""
    rng = np.random.default_rng(0)
    table = rng.normal(0, 0.03, (400, 1)) + rng.normal(0, 0.1, (1, 400)) + rng.normal(0, 0.2, (400, 400))
    found = paired_components([(table, 0 * table)])
    assert (found.seeds, found.items, found.seed_items) == pytest.approx((0.03**2, 0.1**2, 0.2**2), rel=0.15)
    assert found.freedom == 399


def test_two_seeds_of_a_baseline_count_twice():
    """Means .5 and .6: variance .005 of a run, of a difference .01. One item more than noise: none."""
    table = np.array([[0.5, 0.5], [0.6, 0.6]])
    found = unpaired_components([table])
    assert found.seeds == pytest.approx(0.01)
    assert (found.items, found.seed_items, found.freedom) == (0.0, 0.0, 1)


def test_what_variants_do_to_items_shows_between_their_means():
    """Differences by item .2 and 0, without noise: variance .02."""
    one, other = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.7, 0.5]])
    groups = [one, other]
    assert unpaired_components(groups, [(groups[1], groups[0])]).items == pytest.approx(0.02)


def test_without_two_seeds_nothing_is_known():
    lone = np.ones((1, 3))
    with pytest.raises(StatisticsError, match="two seeds of one variant"):
        unpaired_components([lone, lone])
    with pytest.raises(StatisticsError, match="two pairs of seeds"):
        paired_components([(lone, lone)])


COMPONENTS = DifferenceComponents(seeds=0.0004, items=0.01, seed_items=0.1, freedom=8)


def test_the_detectable_difference_has_the_power_asked_for():
    least = detectable_difference(COMPONENTS, 5, 256)
    assert verdict_power(least, COMPONENTS, 5, 256) == pytest.approx(0.8, abs=0.002)
    assert verdict_power(-least, COMPONENTS, 5, 256) == pytest.approx(0.8, abs=0.002)
    assert detectable_difference(COMPONENTS, 2, 256) == np.inf


def test_the_fewest_seeds_are_the_fewest():
    seeds = planned_seeds(0.03, COMPONENTS, 256)
    assert seeds is not None
    assert verdict_power(0.03, COMPONENTS, seeds, 256) >= 0.8 > verdict_power(0.03, COMPONENTS, seeds - 1, 256)


def test_no_number_of_seeds_makes_up_for_few_items():
    """Items alone: √(.01/64) = .0125, and .01 of difference is .8 of that."""
    assert planned_seeds(0.01, COMPONENTS, 64) is None


def test_two_seeds_say_little_of_how_much_seeds_differ():
    """χ²₁ at 2.5 and 97.5 %: 0.000982 and 5.024; √(1/5.024) = 0.446, √(1/0.000982) = 31.9."""
    assert uncertainty(1) == pytest.approx((0.446, 31.9), rel=0.01)

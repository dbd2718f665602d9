"""On sweeps whose truth is known the verdict is as often wrong, and as often found, as it says."""

import numpy as np
import pytest
from scipy import stats

from evenkeel.trainer.lab.statistics.intervals import paired_difference
from evenkeel.trainer.lab.statistics.verdict import power, verdict
from tests.trainer.lab.statistics.simulated_sweeps import answers

RIGHT = {"A versus A": {}, "seeds differ much": {"seed_sd": 1.0}, "other items": {"own_items_sd": 1.0}}
DIFFICULT = {"near the ceiling": {"accuracy": 0.99, "items": 100}, "few items": {"items": 30, "accuracy": 0.5}}


def false_alarms(sweeps: int, seeds: int, **truth: float) -> int:
    """Sweeps of A versus A that the verdict calls better or worse."""
    variants, baselines = answers(np.random.default_rng(7), sweeps=sweeps, seeds=seeds, **truth)
    outcomes = [
        verdict(paired_difference(variant, baseline)).outcome
        for variant, baseline in zip(variants, baselines, strict=True)
    ]
    return sum(outcome in ("better", "worse") for outcome in outcomes)


def test_equal_variants_are_rarely_told_apart():
    """≤ 5 % in truth: of 300 sweeps 26 or more would be seen in fewer than 1 of 150 runs of this test."""
    assert stats.binom.sf(25, 300, 0.05) < 1 / 150
    assert false_alarms(300, 3) <= 25


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("truth", [*RIGHT.values(), *DIFFICULT.values()], ids=[*RIGHT, *DIFFICULT])
def test_equal_variants_are_told_apart_in_at_most_six_of_a_hundred_sweeps(truth: dict[str, float], seeds: int):
    assert false_alarms(1_000, seeds, **truth) <= 60


@pytest.mark.parametrize(("seeds", "computed"), [(3, 0.218), (5, 0.336), (10, 0.431)])
def test_a_difference_of_two_standard_errors_is_found_as_often_as_computed(seeds: int, computed: float):
    """Normal seed means, as the formula assumes; 4,000 sweeps, four standard errors of a share: ± 0.03."""
    assert power(2.0, seeds) == pytest.approx(computed, abs=5e-4)
    differences = np.random.default_rng(3).normal(2 / np.sqrt(seeds), 1.0, size=(4_000, seeds))
    found = stats.ttest_1samp(differences, 0, axis=1).confidence_interval().low > 0
    assert found.mean() == pytest.approx(computed, abs=4 * np.sqrt(0.25 / 4_000))

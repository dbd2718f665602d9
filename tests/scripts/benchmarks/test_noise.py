"""The benchmark of rounding: every strategy that reads a log-probability is in it, and no noise changes nothing."""

import pytest

from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT
from evenkeel.trainer.algorithms.registry import built_in, find_strategy
from evenkeel.trainer.algorithms.trial import coefficient_under_noise
from scripts.benchmarks.noise import CASES, CORRECTIONS, Rounding, effects, reads_no_log_probs, remainder
from tests.paths import ROOT

READ = {"old_logps", "logps", "log_ratio", "probs", "entropies", "teacher_logps", "teacher_contrast"}


def test_every_strategy_that_reads_a_log_probability_is_measured_and_documented():
    strategies = [
        find_strategy(kind, name) for kind in (ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT) for name in built_in(kind)
    ]
    reading = {strategy.name for strategy in strategies if READ & strategy.signals} - {"uniform"}
    assert reading & {*reads_no_log_probs()} == set()
    documented = (ROOT / "docs/devices.md").read_text()
    assert [name for name in (*CASES, *CORRECTIONS) if f"| `{name}` |" not in documented] == []
    assert [name for name in reads_no_log_probs() if f"`{name}`" not in documented] == []


def test_no_noise_changes_nothing_and_much_changes_each_that_multiplies():
    for name, effect in effects(0.0, 12, 0).items():
        assert (effect.cosine, effect.norms, effect.mean_factor) == pytest.approx((1, 1, 1)), name
    assert remainder(0.5, 12, 0) < 1e-6
    multiplying = ("dfpo_min_replace, weight", "topr, ratio", "trajectory_ratio, weight", "dfpo_orthogonal, weight")
    noisy = effects(0.1, 100, 0, [name for name in CASES if name.startswith(multiplying)])
    assert noisy["dfpo_min_replace, weight: product"].mean_factor < 0.4
    assert noisy["dfpo_min_replace, weight: geometric"].mean_factor > 0.95
    assert noisy["topr, ratio: product"].mean_factor < noisy["topr, ratio: geometric"].mean_factor
    assert {name for name, effect in noisy.items() if effect.norms > 1.5} == {
        "trajectory_ratio, weight: product",
        "dfpo_orthogonal, weight: product",
    }


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if COEFFICIENT in case])
def test_what_check_says_of_a_coefficient_is_what_the_benchmark_measures(name: str):
    """dppo and aspo drop tokens by the sign of the advantage too; both have as many of each."""
    said = coefficient_under_noise(find_strategy(COEFFICIENT, CASES[name][COEFFICIENT]), 100, 0.03)
    assert said == pytest.approx(effects(0.03, 100, 0, [name])[name].mean_factor, abs=0.06)


def test_bfloat16_changes_log_probabilities_by_more_than_a_small_update_does():
    """Half a percent to four: bfloat16 keeps 8 bits, and what a token's log π is rounded by is no other's."""
    measured = Rounding.of_an_update(1e-6, rows=16, tokens=48)
    assert measured.change < 1e-3
    assert 0.005 < measured.noise < 0.04
    assert 0.5 < measured.of_sums < 2

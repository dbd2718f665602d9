"""The benchmark of rounding: every strategy that reads a log-probability is in it, and no noise changes nothing."""

import pytest

from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT
from evenkeel.trainer.algorithms.registry import built_in, find_strategy
from evenkeel.trainer.algorithms.trial import coefficient_under_noise
from scripts.benchmarks.noise import CASES, CORRECTIONS, effects, reads_no_log_probs
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


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if COEFFICIENT in case])
def test_what_check_says_of_a_coefficient_is_what_the_benchmark_measures(name: str):
    """dppo and aspo drop tokens by the sign of the advantage too; both have as many of each."""
    said = coefficient_under_noise(find_strategy(COEFFICIENT, CASES[name][COEFFICIENT]), 100, 0.03)
    assert said == pytest.approx(effects(0.03, 100, 0, [name])[name].mean_factor, abs=0.06)

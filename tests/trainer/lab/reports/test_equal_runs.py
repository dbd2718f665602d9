"""Verdicts on real runs that differ in their seeds alone, `equal_runs.json`: false ones, and planted effects."""

import json

import numpy as np
import pytest

from scripts.research.equal_runs import found, interval
from tests.paths import ROOT

POOL = json.loads((ROOT / "tests/trainer/lab/reports/equal_runs.json").read_text())
EFFECTS = dict(zip(POOL, (0.1, 0.08, 0.03, 0.5, 1.0, 0.1, 0.4, 0.04, 0.8, 0.15), strict=True))
"""In the unit of the outcome."""


@pytest.mark.slow
@pytest.mark.parametrize("name", POOL)
def test_equal_runs_are_not_told_apart_more_often_than_the_level_says(name: str):
    """The 95 % interval of the share, over the runs of the pool, contains 5 % or lies below it."""
    low, _ = interval(POOL, name, seeds=5)
    assert low <= 0.05


@pytest.mark.parametrize(("name", "effect"), EFFECTS.items())
def test_an_effect_that_is_planted_is_found_with_eight_seeds(name: str, effect: float):
    rng = np.random.default_rng(3)
    draws = [rng.choice(len(POOL[name]), 16, replace=False).tolist() for _ in range(100)]
    assert np.mean([found(POOL, name, chosen, effect) for chosen in draws]) >= 0.8

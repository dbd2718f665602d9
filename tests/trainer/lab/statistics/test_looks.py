"""Sweeps that are looked at while they run: as seldom wrong as others, and shorter.

The rates in the documentation: `python -m tests.trainer.lab.statistics.test_looks`.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from evenkeel.trainer.lab.statistics import Estimate, look_at, look_levels, paired_difference
from evenkeel.trainer.lab.statistics.verdict import outcome_of
from tests.trainer.lab.statistics.simulated_sweeps import answers

LOOKS = ([3, 5], [3, 4, 5], [4, 6, 8], [4, 6, 8, 10])


@dataclass(frozen=True)
class Rates:
    """Of simulated comparisons: told apart, stopped as hopeless, and cells that were not run of those planned."""

    told: float
    hopeless: float
    saved: float


def rates(looks: list[int], sweeps: int, futility: float = 0.1, seed: int = 7, **truth: Any) -> Rates:
    """Sweeps of answers to 256 items, looked at as the runner does."""
    drawn = answers(np.random.default_rng(seed), sweeps=sweeps, seeds=looks[-1], **truth)
    levels, told, hopeless, run = look_levels(looks), 0, 0, 0
    for variant, baseline in zip(*drawn, strict=True):
        for position, number in enumerate(looks):
            seen = paired_difference(variant[:number], baseline[:number], 1 - levels[position])
            look = look_at(seen, looks, levels, position, futility)
            if look.stops:
                break
        told += look.outcome in ("better", "worse")
        hopeless += look.outcome == "hopeless"
        run += look.seeds
    return Rates(told / sweeps, hopeless / sweeps, 1 - run / (sweeps * looks[-1]))


def power_without_looks(seeds: int, sweeps: int, seed: int = 7, **truth: Any) -> float:
    drawn = answers(np.random.default_rng(seed), sweeps=sweeps, seeds=seeds, **truth)
    return np.mean([outcome_of(paired_difference(*both)) in ("better", "worse") for both in zip(*drawn, strict=True)])


@pytest.mark.slow
@pytest.mark.parametrize("looks", LOOKS, ids=str)
@pytest.mark.parametrize("truth", [{}, {"seed_sd": 1.0}, {"own_items_sd": 1.0}], ids=str)
def test_equal_variants_are_told_apart_in_at_most_five_of_a_hundred_sweeps(looks: list[int], truth: dict[str, float]):
    """2,000 sweeps: 5 % has a standard error of 0.49 %, and three of them are allowed for."""
    assert rates(looks, 2_000, **truth).told <= 0.05 + 3 * 0.0049


LEVELS = look_levels([3, 5])


def estimate(value: float, sd: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 3, None, sd**2, 0.0)


def test_a_look_ends_what_is_decided_and_what_is_hopeless():
    better = look_at(estimate(0.1, 0.01, 0.03, 0.17), [3, 5], LEVELS, 0, 0.1)
    assert (better.outcome, better.stops) == ("better", True)
    hopeless = look_at(estimate(0.0, 0.01, -0.1, 0.1), [3, 5], LEVELS, 0, 0.1)
    assert (hopeless.outcome, hopeless.stops, hopeless.chance < 0.1) == ("hopeless", True, True)
    between = look_at(estimate(0.01, 0.01, -0.1, 0.1), [3, 5], LEVELS, 0, 0.1)
    assert (between.outcome, between.stops) == ("goes on", False)


def test_nothing_is_hopeless_where_nobody_asks():
    assert look_at(estimate(0.0, 0.01, -0.1, 0.1), [3, 5], LEVELS, 0, 0.0).outcome == "goes on"


def test_the_last_look_says_what_a_verdict_says():
    last = look_at(estimate(0.0, 0.01, -0.1, 0.1), [3, 5], LEVELS, 1, 0.1)
    assert (last.outcome, last.stops, last.level) == ("not distinguishable", False, LEVELS[1])
    decided = look_at(estimate(0.1, 0.01, 0.03, 0.17), [3, 5], LEVELS, 1, 0.1)
    assert (decided.outcome, decided.stops) == ("better", False)  # there is nothing left to stop


def test_a_look_without_all_runs_is_left_out():
    assert look_at(None, [3, 5], LEVELS, 0, 0.1).outcome == "left out"


if __name__ == "__main__":
    head = (
        "looks",
        "futility",
        "A–A: told apart",
        "saved",
        "effect .8: found (without looks)",
        "saved",
        "1.6",
        "saved",
    )
    sys.stdout.write(f"| {' | '.join(head)} |\n")
    for planned in LOOKS:
        for limit in (0.1, 0.0):
            none, some, much = (rates(planned, 2_000, limit, effect=effect) for effect in (0.0, 0.8, 1.6))
            whole = power_without_looks(planned[-1], 2_000, effect=0.8)
            sys.stdout.write(
                f"| {', '.join(map(str, planned))} | {limit} | {none.told:.1%} | {none.saved:.0%} | {some.told:.0%} "
                f"({whole:.0%}) | {some.saved:.0%} | {much.told:.0%} | {much.saved:.0%} |\n"
            )
            sys.stdout.flush()

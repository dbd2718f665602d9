"""The rule of claims: its arithmetic, and that equals are told apart in 5 % at most."""

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.statistics.claim import claim_answer
from evenkeel.trainer.lab.statistics.intervals import paired_difference
from evenkeel.trainer.lab.statistics.verdict import verdict
from tests.trainer.lab.statistics.simulated_sweeps import answers


def five(value: float, variance: float = 0.0005) -> Estimate:
    """Five seeds: of standard error √(0.0005 / 5) = 0.01; t(4) is 2.776 at 5 % and 3.495 at 2.5 %."""
    half = 2.776445 * math.sqrt(variance / 5)
    return Estimate(value, value - half, value + half, 5, 256, seed_variance=variance, item_variance=0.0)


TRUTHS: dict[str, dict[str, Any]] = {
    "seeds as of the quickstart": {},
    "seeds differ four times as much": {"seed_sd": 1.0},
    "variants right on other items": {"own_items_sd": 1.0},
    "30 items": {"items": 30, "accuracy": 0.5},
}


def wrong_answers(claims: int, seeds: int, others: int, **truth: Any) -> tuple[int, int]:
    """How many of so many claims about equals, simulated as by `answers`, are supported and contradicted."""
    rng = np.random.default_rng(0)
    found = {"supported": 0, "contradicted": 0, "not decided": 0}
    for _ in range(claims):
        ours, *theirs = (each[0] for each in answers(rng, sweeps=1, seeds=seeds, others=others, **truth))
        pairs = {str(number): paired_difference(ours, each) for number, each in enumerate(theirs)}
        found[claim_answer(pairs, matters=0.02).answer] += 1
    return found["supported"], found["contradicted"]


def test_by_hand():
    """0.03 ± 0.0278 lies above 0; the other, 0.02 ± 0.0278, does not; so both together support nothing."""
    other = five(0.02)
    alone = claim_answer({"grpo": five(0.03)}, matters=0.02)
    assert alone.answer == "supported"
    assert alone.seeds_needed is None
    both = claim_answer({"grpo": five(0.03), "control": other}, matters=0.02)
    assert both.answer == "not decided"
    assert not both.excludes_what_matters
    assert claim_answer({"grpo": five(-0.03)}, matters=0.02).answer == "contradicted"


def test_several_others_contradict_at_their_share_of_the_level():
    """−0.03 + 0.0278 < 0 < −0.03 + 0.03495; −0.036 + 0.03495 < 0."""
    against = {"grpo": five(0.03), "control": five(-0.03)}
    assert claim_answer(against, matters=0.02).answer == "not decided"
    assert claim_answer({**against, "control": five(-0.036)}, matters=0.02).answer == "contradicted"


def test_what_matters_is_excluded_where_an_interval_ends_below_it():
    narrow = five(0.004, 0.00002)  # ± 0.0056
    found = claim_answer({"grpo": narrow}, matters=0.02)
    assert (found.answer, found.excludes_what_matters) == ("not decided", True)
    assert found.seeds_needed == 3  # 0.02 is 4.5 standard deviations of a pair: 7.7 errors at three
    steady = claim_answer({"grpo": five(0.0, 1e-7)}, matters=0.02)
    assert steady.seeds_needed == 3  # two would see 63 deviations, but give no verdict


@pytest.mark.parametrize("few", [replace(five(0.03), num_seeds=2), replace(five(0.03), num_seeds=1), five(0.03, 0.0)])
def test_few_seeds_and_seeds_without_spread_decide_nothing(few: Estimate):
    assert claim_answer({"grpo": few}, matters=0.02).answer == "not decided"


@given(st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=10, unique=True))
def test_against_one_it_is_the_verdict(differences: list[float]):
    estimate = paired_difference(np.array(differences), np.zeros(len(differences)))
    expected = {"better": "supported", "worse": "contradicted"}.get(verdict(estimate).outcome, "not decided")
    assert claim_answer({"grpo": estimate}, matters=0.02).answer == expected


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
@pytest.mark.parametrize(("seeds", "others"), [(3, 1), (3, 3), (5, 2), (10, 1)])
def test_equals_are_told_apart_in_at_most_six_of_a_hundred_claims(seeds: int, others: int, truth: dict[str, float]):
    assert sum(wrong_answers(1_000, seeds, others, **truth)) <= 60


if __name__ == "__main__":
    for design in [(seeds, others) for seeds in (3, 5, 10) for others in (1, 2, 3)]:
        cells = [wrong_answers(2_000, *design, **truth) for truth in TRUTHS.values()]
        sys.stdout.write(f"{design}: {', '.join(f'{(yes + no) / 20:.1f} % ({yes} + {no})' for yes, no in cells)}\n")
        sys.stdout.flush()

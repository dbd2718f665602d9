"""Error rates of a verifier on the bench's trials."""

import math

import pytest

from evenkeel.rewards.bench.bench import Bench, Measured


def measured(count: int, right: int, unjudged: int = 0) -> Measured:
    return Measured(count, right, 0, unjudged, 0, [], 0.0)


def test_shares_of_what_was_judged():
    """2 of 10 judged golds are refused; of 20 wrong texts 4 are unjudged, 1 is the same answer, and 3 are paid."""
    kinds = {"gold": measured(12, 8, 2), "other row": measured(8, 2), "adversarial": measured(12, 2, 4)}
    found = Bench("a", 12, kinds, 0, [], 1, [])
    assert found.error_rates == pytest.approx((3 / 15, 2 / 10))


def test_without_trials_nothing_is_known():
    assert all(map(math.isnan, Bench("a", 0, {}, 0, [], 0, []).error_rates))

"""The benchmark of the update phase counts what it says: tokens under a gradient, and those that must be computed."""

import pytest

from scripts.benchmarks.update import VARIANTS, Size, SyntheticRollouts, compared_updates

TINY = Size(128, 1, 32, "float32", 4, 2, 2, 4, 8, 16)


def test_the_floor_counts_live_rows_with_their_prompts():
    whole, half = (SyntheticRollouts(TINY, half_dead=dead) for dead in (False, True))
    lengths = whole.lengths()
    assert whole.floor() == int(lengths.sum()) + 8 * 4
    assert half.floor() == int(lengths[[0, 1, 4, 5]].sum()) + 4 * 4
    assert half.reward([None] * 8) == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.slow
def test_every_variant_is_measured_and_stock_computes_every_padded_token():
    result = compared_updates(TINY, half_dead=True, rounds=1, device="cpu", say=lambda line: None)
    assert list(result["variants"]) == list(VARIANTS)
    assert result["fell_back"] == []
    rollouts = SyntheticRollouts(TINY, half_dead=True)
    rollouts.number = 1
    stock, planned = (result["variants"][name] for name in ("stock", "planned"))
    assert stock["tokens"] == 8 * (4 + int(rollouts.lengths().max()))
    assert rollouts.floor() <= planned["tokens"] < 0.8 * stock["tokens"]
    assert stock["faster_than_stock"]["median"] == 1.0

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenkeel.trainer.algorithms.token_weights import adv_reweight, low_probability_reweight, probability_window

property_test = settings(max_examples=25, deadline=None, derandomize=True)
unit_interval = st.floats(0, 1, width=32)
token_probs = npst.arrays("float32", (3, 4), elements=unit_interval).map(torch.from_numpy)
token_masks = npst.arrays("int64", (3, 4), elements=st.integers(0, 1)).map(torch.from_numpy)


def weights(probs, mask=None, **options):
    mask = torch.ones_like(probs, dtype=torch.long) if mask is None else mask
    return adv_reweight(probs, torch.zeros_like(probs), mask, **options)


def test_adv_reweight_by_hand():
    # α = 0.2: 0.2·0 + 0.8, 0.2·0.5 + 0.8, 0.2·1 + 0.8
    torch.testing.assert_close(weights(torch.tensor([[0.0, 0.5, 1.0]]), alpha=0.2), torch.tensor([[0.8, 0.9, 1.0]]))


@property_test
@given(token_probs, token_masks, st.floats(0, 0.99))
def test_normalized_weights_average_one_over_the_tokens_that_count(probs, mask, alpha):
    mask[0, 0] = 1
    plain, normalized = weights(probs, alpha=alpha), weights(probs, mask, alpha=alpha, normalize="mean")
    torch.testing.assert_close(normalized[mask.bool()].mean(), torch.tensor(1.0))
    torch.testing.assert_close(normalized * plain[mask.bool()].mean(), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_normalized_weights_stay_as_they_are_where_nothing_counts(dtype):
    probs = torch.rand(2, 3).to(dtype)
    nothing = torch.zeros(2, 3, dtype=torch.long)
    assert torch.equal(weights(probs, nothing, normalize="mean"), weights(probs))
    never = torch.zeros(2, 3, dtype=dtype)
    assert torch.equal(weights(never, alpha=1.0, normalize="mean"), never)


def test_the_opposite_of_ar_by_hand():
    # α = 0.2: 1 + 0.2·1, 1 + 0.2·0.5, 1 + 0; their mean is 1.1
    probs, mask = torch.tensor([[0.0, 0.5, 1.0]]), torch.ones(1, 3, dtype=torch.long)
    expected = torch.tensor([[1.2, 1.1, 1.0]])
    torch.testing.assert_close(low_probability_reweight(probs, probs, mask), expected)
    normalized = low_probability_reweight(probs, -probs, mask, normalize="mean")
    torch.testing.assert_close(normalized, expected / 1.1)
    assert torch.equal(low_probability_reweight(probs, probs, mask, alpha=0.0), torch.ones(1, 3))


def test_windows_of_probabilities_that_meet_share_no_token_and_leave_none_out():
    probs = torch.tensor([[0.0, 0.25, 0.5, 0.75, 1.0]])
    quarters = [probability_window(probs, low=start / 4, high=(start + 1) / 4) for start in range(4)]
    expected = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]]
    assert [quarter[0].tolist() for quarter in quarters] == expected
    with pytest.raises(ValueError, match=r"0\.5"):
        probability_window(probs, low=0.5, high=0.5)

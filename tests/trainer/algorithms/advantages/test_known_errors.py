"""Corrections of known error rates: their arithmetic, and that in expectation they are the truth."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.advantages.known_errors import backward_corrected, forward_corrected
from tests.trainer.algorithms.advantages.rollouts import NAN

SEEN = torch.tensor([1.0, 0.0], dtype=torch.float64)
RATES = st.tuples(st.floats(0, 0.49), st.floats(0, 0.49))


def test_by_hand():
    """ρ₀ = 0.1, ρ₁ = 0.4: (1 − 0.1) / 0.5 = 1.8 and (0 − 0.1) / 0.5 = −0.2; 1 − 0.6 = 0.4 and 0 − 0.6 = −0.6."""
    rewards = torch.tensor([1.0, 0.0, NAN])
    backward = backward_corrected(rewards, false_positive=0.1, false_negative=0.4)
    torch.testing.assert_close(backward, torch.tensor([1.8, -0.2, NAN]), equal_nan=True)
    forward = forward_corrected(rewards, false_negative=0.4)
    torch.testing.assert_close(forward, torch.tensor([0.4, -0.6, NAN]), equal_nan=True)


@given(RATES)
def test_the_expectation_over_the_errors_is_the_truth(rates: tuple[float, float]):
    false_positive, false_negative = rates
    of_right, of_wrong = (torch.tensor([p, 1 - p], dtype=SEEN.dtype) for p in (1 - false_negative, false_positive))
    backward = backward_corrected(SEEN, false_positive=false_positive, false_negative=false_negative)
    assert (backward @ of_right).item() == pytest.approx(1, abs=1e-9)
    assert (backward @ of_wrong).item() == pytest.approx(0, abs=1e-9)
    forward = forward_corrected(SEEN, false_negative=false_negative)
    assert (forward @ of_right).item() == pytest.approx(0, abs=1e-9)
    assert (forward @ of_wrong).item() == pytest.approx(-(1 - false_positive - false_negative), abs=1e-9)


@pytest.mark.parametrize("rates", [(0.5, 0.5), (-0.1, 0.0), (0.3, 0.8)])
def test_rates_that_leave_nothing_are_refused(rates: tuple[float, float]):
    with pytest.raises(ValueError, match="cannot be corrected"):
        backward_corrected(SEEN, false_positive=rates[0], false_negative=rates[1])

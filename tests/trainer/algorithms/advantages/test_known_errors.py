"""Corrections of known error rates: their arithmetic, and that in expectation they are the truth."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.advantages.known_errors import backward_corrected, forward_corrected

SEEN = torch.tensor([1.0, 0.0], dtype=torch.float64)
RATES = st.tuples(st.floats(0, 0.49), st.floats(0, 0.49))


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

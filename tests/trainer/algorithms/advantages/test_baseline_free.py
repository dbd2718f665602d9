"""Estimators without a baseline train groups that others call dead."""

import pytest
import torch

from evenkeel.trainer.algorithms.advantages.baseline_free import nsr, psr, reinforce, w_reinforce
from evenkeel.trainer.algorithms.contract import traits_of
from tests.trainer.algorithms.advantages.rollouts import NAN

REWARDS = torch.tensor([1.0, 1.0, 0.0, 0.0, 1.0, NAN, 0.25, 2.0])


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (reinforce, [1, 1, 0, 0, 1, NAN, 0.25, 2]),
        (psr, [1, 1, 0, 0, 1, NAN, 0, 2]),
        (nsr, [0, 0, -1, -1, 0, NAN, -0.75, 0]),
        (w_reinforce, [0.1, 0.1, -1, -1, 0.1, NAN, -0.75, 0.2]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_by_hand(estimator, expected):
    torch.testing.assert_close(estimator(REWARDS), torch.tensor(expected).float(), equal_nan=True)
    assert traits_of(estimator).trains_dead_groups


def test_right_is_where_the_reward_says_so():
    torch.testing.assert_close(psr(torch.tensor([3.0, -0.5]), right_at=3.0), torch.tensor([3.0, 0.0]))
    torch.testing.assert_close(nsr(torch.tensor([3.0, -0.5]), right_at=3.0), torch.tensor([0.0, -3.5]))

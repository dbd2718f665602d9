"""Arithmetic inside a group: what is dead, counted, right."""

import pytest
import torch

from evenkeel.trainer.algorithms.advantages.group_baselines import dr_grpo, grpo, reinforce_pp, rloo
from evenkeel.trainer.algorithms.groups import dead_groups

NAN = float("nan")


def test_dead_groups_marks_rows_without_differing_verdicts():
    rewards = torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2, 0.3, NAN, 0.7, NAN, NAN, NAN, NAN, 0.0, 0.0, 0.0])
    assert dead_groups(rewards, 3).tolist() == [True] * 3 + [False] * 3 + [True] * 9


@pytest.mark.parametrize("estimator", [grpo, dr_grpo, rloo, reinforce_pp], ids=lambda function: function.__name__)
def test_two_sums_that_are_equal_but_for_rounding_are_dead(estimator):
    # .3·.5 + .5·2 = .3·3 + .5·.5 = 1.15, reached on two ways that differ in the last bit.
    weights = torch.tensor([0.3, 0.5])
    scores = torch.tensor([[0.5, 2.0], [3.0, 0.5]])
    rewards = (scores * weights).sum(1)
    assert rewards[0] != rewards[1]
    assert dead_groups(rewards, 2).all()
    assert (estimator(rewards, 2) == 0).all()


@pytest.mark.parametrize("largest", [1.0, -1.0, 1e-3, 1e4])
def test_the_spread_that_counts_is_relative_to_the_largest_reward(largest):
    just_dead = torch.tensor([largest, largest * (1 - 0.9e-6)], dtype=torch.float64)
    just_alive = torch.tensor([largest, largest * (1 - 1.1e-6)], dtype=torch.float64)
    assert dead_groups(just_dead, 2).all()
    assert not dead_groups(just_alive, 2).any()

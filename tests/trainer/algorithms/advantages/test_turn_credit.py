"""Credit by turn, by hand; the tables of the authors' code are in golden.json."""

import pytest
import torch

from evenkeel.trainer.algorithms.advantages import gigpo, grpo, turn_discounted, turn_grpo
from evenkeel.trainer.algorithms.groups import GROUP_STD_EPSILON
from tests.trainer.algorithms.advantages.rollouts import NAN

TURNS = torch.tensor([[0, -1, 1, 1], [0, 0, -1, 1], [0, -1, -1, -1], [0, -1, 1, -1]])
"""Of a group of four; in row 2 the third token was never written."""
REWARDS = torch.tensor([1.0, 0.0, 0.0, NAN])
PAID = torch.tensor([[0.0, 0.5], [0.25, 0.0], [0.5, NAN], [4.0, 4.0]])


def both(first: float, second: float) -> torch.Tensor:
    """Two standardised values: ±half of their distance, over their std + ε."""
    half = (first - second) / 2
    return torch.tensor([half, -half]) / (abs(first - second) / 2**0.5 + GROUP_STD_EPSILON)


def close(result: torch.Tensor, of_turns: list[list[float]]) -> None:
    expected = [
        [row[turn] if turn >= 0 else 0.0 for turn in turns] for row, turns in zip(of_turns, TURNS[:3], strict=True)
    ]
    torch.testing.assert_close(result, torch.tensor([*expected, [NAN] * 4]), equal_nan=True)


def test_a_state_that_is_not_known_is_that_of_no_other_turn():
    alone = gigpo(REWARDS, 4, TURNS, PAID, torch.tensor([[-1, -1]] * 4), step_weight=9.0)
    assert torch.equal(alone.nan_to_num(), gigpo(REWARDS, 4, TURNS, PAID, torch.arange(8).view(4, 2)).nan_to_num())
    close(alone, [[0.7] * 2, [-0.55] * 2, [-0.3] * 2])


def test_discounted_returns_are_compared_by_turn_or_over_the_group():
    # γ = 1/2: returns .75, 1.5; .25, 0; .5.
    by_turn = turn_discounted(REWARDS, 4, TURNS, PAID, gamma=0.5)
    first, second = grpo(torch.tensor([0.75, 0.25, 0.5, NAN]), 4).tolist(), both(1.5, 0.0).tolist()
    close(by_turn, [[first[0], second[0]], [first[1], second[1]], [first[2], NAN]])

    of_group = grpo(torch.tensor([0.75, 1.5, 0.25, 0.0, 0.5]), 5).tolist()
    result = turn_discounted(REWARDS, 4, TURNS, PAID, gamma=0.5, within="group")
    close(result, [of_group[:2], of_group[2:4], [of_group[4], NAN]])


@pytest.mark.parametrize("estimate", [turn_grpo, turn_discounted], ids=lambda function: function.__name__)
def test_one_unpaid_turn_each_is_grpo(estimate):
    turns, rewards = torch.tensor([[0, 0, -1]] * 4), torch.tensor([1.0, 0.0, NAN, 1.0])
    result = estimate(rewards, 4, turns, torch.zeros(4, 1))
    expected = grpo(rewards, 4)[:, None] * torch.tensor([1.0, 1.0, 0.0])
    torch.testing.assert_close(result, expected, equal_nan=True, rtol=0, atol=0)

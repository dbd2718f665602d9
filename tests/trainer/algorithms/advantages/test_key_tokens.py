"""KTAE's statistics against scipy's; the numbers of the authors' class are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.advantages.key_tokens import ktae


def test_masked_tokens_and_the_end_token_have_no_value():
    rewards = torch.tensor([1.0, 0.0])
    ids, mask = torch.tensor([[5, 6, 2], [7, 5, 2]]), torch.tensor([[1, 0, 1], [1, 1, 0]])
    result = ktae(rewards, 2, ids, mask, end_token_id=2) - grpo(rewards, 2)[:, None]
    assert (result[mask == 0] == 0).all()
    assert (result[ids == 2] == 0).all()
    assert result[1, 0] < -0.99
    assert abs(result[0, 0]) < 0.5  # 5 is in both


def test_without_a_right_answer_it_is_grpo():
    rewards = torch.tensor([0.0, -1.0])
    ids = torch.tensor([[5], [6]])
    assert torch.equal(ktae(rewards, 2, ids, torch.ones_like(ids)), grpo(rewards, 2)[:, None])

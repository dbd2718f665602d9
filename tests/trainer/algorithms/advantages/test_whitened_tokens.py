"""REINFORCE++ over tokens; the numbers of verl's functions are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.whitened_tokens import reinforce_pp_original, reinforce_pp_token
from tests.trainer.algorithms.advantages.rollouts import NAN


def test_equal_rewards_in_the_whole_batch_teach_nothing():
    result = reinforce_pp_original(torch.tensor([0.7, 0.7, NAN, 0.7]), torch.tensor([3, 1, 7, 2]))
    assert torch.equal(result.nan_to_num(nan=-1.0), torch.tensor([0.0, 0.0, -1.0, 0.0]))


def test_a_group_of_equal_rewards_is_compared_with_the_batch_by_the_original_alone():
    rewards, lengths = torch.tensor([1.0, 1.0, 0.0, 1.0]), torch.ones(4, dtype=torch.long)
    assert (reinforce_pp_original(rewards, lengths)[:2] > 0).all()
    assert (reinforce_pp_token(rewards, 2, lengths)[:2] == 0).all()

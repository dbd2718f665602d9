"""REINFORCE++ over tokens; the numbers of verl's functions are in golden.json."""

import torch
from hypothesis import given

from evenkeel.trainer.algorithms.advantages.whitened_tokens import reinforce_pp_original, reinforce_pp_token
from tests.trainer.algorithms.advantages.rollouts import NAN, estimate, property_test, rollouts


def test_a_response_counts_as_often_as_it_has_tokens():
    # Tokens 1, 1, 1, 0: mean 3/4, squares 3·(1/4)² + (3/4)² = 3/4, ddof 1: variance 1/4.
    result = reinforce_pp_original(torch.tensor([1.0, 0.0, NAN]), torch.tensor([3, 1, 7]))
    torch.testing.assert_close(result, torch.tensor([0.5, -1.5, NAN]), equal_nan=True)


def test_the_group_mean_goes_first():
    # Centred ±1/2 and ±1, lengths 2, 1, 1, 2: tokens ½ ½ −½ 1 −1 −1: mean −1/12, squares 3.75 − 6/144, over 5.
    result = reinforce_pp_token(torch.tensor([1.0, 0.0, 2.0, 0.0]), 2, torch.tensor([2, 1, 1, 2]))
    std = ((3.75 - 6 / 144) / 5) ** 0.5
    torch.testing.assert_close(result, (torch.tensor([0.5, -0.5, 1.0, -1.0]) + 1 / 12) / std)


def test_equal_rewards_in_the_whole_batch_teach_nothing():
    result = reinforce_pp_original(torch.tensor([0.7, 0.7, NAN, 0.7]), torch.tensor([3, 1, 7, 2]))
    assert torch.equal(result.nan_to_num(nan=-1.0), torch.tensor([0.0, 0.0, -1.0, 0.0]))


def test_a_group_of_equal_rewards_is_compared_with_the_batch_by_the_original_alone():
    rewards, lengths = torch.tensor([1.0, 1.0, 0.0, 1.0]), torch.ones(4, dtype=torch.long)
    assert (reinforce_pp_original(rewards, lengths)[:2] > 0).all()
    assert (reinforce_pp_token(rewards, 2, lengths)[:2] == 0).all()


@property_test
@given(rollouts())
def test_the_tokens_of_the_original_have_mean_zero_and_variance_one(rollout):
    advantages, lengths = estimate("reinforce_pp_original", rollout), rollout["lengths"]
    tokens = advantages.repeat_interleave(lengths)
    tokens = tokens[~tokens.isnan()]
    if len(tokens) > 1 and tokens.unique().numel() > 1:
        assert tokens.mean().abs() < 1e-5
        torch.testing.assert_close(tokens.var(), torch.tensor(1.0), rtol=1e-4, atol=0.0)

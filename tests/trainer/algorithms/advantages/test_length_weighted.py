"""Weights by length: λ-GRPO by hand, VL Norm by hand; the numbers of VL Norm's authors are in golden.json."""

import math

import pytest
import torch

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.advantages.length_weighted import lambda_grpo, vl_norm
from tests.trainer.algorithms.advantages.rollouts import NAN

REWARDS = torch.tensor([1.0, 0.0, NAN, 1.0])


def test_lambda_grpo_by_hand():
    # Judged lengths 2, 4, 6: mean 4, std 2, z = −1, 0, 1; h = 8/9, 1, 10/9; softmax of h², times 3.
    powers = [math.exp((8 / 9) ** 2), math.e, math.exp((10 / 9) ** 2)]
    weights = [3 * power / sum(powers) for power in powers]
    result = lambda_grpo(REWARDS, 4, torch.tensor([2, 4, 9, 6]), exponent=2.0)
    expected = grpo(REWARDS, 4) * torch.tensor([weights[0], weights[1], 1.0, weights[2]])
    torch.testing.assert_close(result, expected, equal_nan=True)


@pytest.mark.parametrize(("exponent", "longer_weighs_more"), [(2.0, True), (-2.0, False)])
def test_the_sign_of_the_exponent_chooses_long_or_short(exponent, longer_weighs_more):
    result = lambda_grpo(torch.tensor([1.0, 1.0, 0.0, 0.0]), 4, torch.tensor([9, 3, 5, 5]), exponent=exponent)
    assert (result[0] > result[1]) == longer_weighs_more


@pytest.mark.parametrize(("exponent", "lengths"), [(0.0, [2, 4, 9, 6]), (3.0, [5, 5, 1, 5])])
def test_without_a_preference_or_a_difference_it_is_grpo(exponent, lengths):
    result = lambda_grpo(REWARDS, 4, torch.tensor(lengths), exponent=exponent)
    torch.testing.assert_close(result, grpo(REWARDS, 4), equal_nan=True)


def test_a_group_that_could_reach_a_power_of_zero_is_refused():
    # (G − 1)/√G passes 9 between G = 82 (8.94) and G = 83 (9.0003).
    lambda_grpo(torch.zeros(82), 82, torch.ones(82, dtype=torch.long))
    with pytest.raises(ValueError, match="in a group of 83"):
        lambda_grpo(torch.zeros(83), 83, torch.ones(83, dtype=torch.long))


def test_vl_norm_by_hand():
    # 1/L = 1/2, 1/4, –, 1/8 over the judged: mean 7/24.
    result = vl_norm(REWARDS, 4, torch.tensor([2, 4, 9, 8]))
    weights = torch.tensor([12 / 7, 6 / 7, 1.0, 3 / 7])
    torch.testing.assert_close(result, grpo(REWARDS, 4) * weights, equal_nan=True)


def test_vl_norm_at_alpha_0_is_grpo_and_at_alpha_1_sums_tokens_alike():
    lengths = torch.tensor([2, 4, 9, 8])
    torch.testing.assert_close(vl_norm(REWARDS, 4, lengths, alpha=0.0), grpo(REWARDS, 4), equal_nan=True)
    per_response = (lengths * vl_norm(REWARDS, 4, lengths) / grpo(REWARDS, 4))[~REWARDS.isnan()]
    torch.testing.assert_close(per_response, per_response[:1].expand(3))


def test_vl_norm_leaves_responses_without_tokens_out_of_the_mean():
    result = vl_norm(torch.tensor([1.0, 0.0, 1.0]), 3, torch.tensor([4, 4, 0]))
    torch.testing.assert_close(result[:2], grpo(torch.tensor([1.0, 0.0, 1.0]), 3)[:2])
    assert result[2] == 0

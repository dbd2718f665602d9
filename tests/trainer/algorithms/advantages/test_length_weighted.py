"""Weights by length: λ-GRPO by hand, VL Norm by hand; the numbers of VL Norm's authors are in golden.json."""

import math

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


def test_vl_norm_leaves_responses_without_tokens_out_of_the_mean():
    result = vl_norm(torch.tensor([1.0, 0.0, 1.0]), 3, torch.tensor([4, 4, 0]))
    torch.testing.assert_close(result[:2], grpo(torch.tensor([1.0, 0.0, 1.0]), 3)[:2])
    assert result[2] == 0

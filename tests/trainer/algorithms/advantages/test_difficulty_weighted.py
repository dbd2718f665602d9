"""GRPO-LEAD by hand; the numbers of its repository are in golden.json."""

import math

import torch

from evenkeel.trainer.algorithms.advantages.difficulty_weighted import grpo_lead
from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from tests.trainer.algorithms.advantages.rollouts import NAN


def test_by_hand():
    # One of four judged right: p = 1/4. Right: w(1/4) = .4 + 1.1/(1 + e^−5); wrong: w(3/4) = .4 + .55.
    rewards = torch.tensor([1.0, 0.0, NAN, 0.0, 0.0])
    right, wrong = 0.4 + 1.1 / (1 + math.exp(-5)), 0.95
    expected = grpo(rewards, 5) * torch.tensor([right, wrong, 1.0, wrong, wrong])
    torch.testing.assert_close(grpo_lead(rewards, 5), expected, equal_nan=True)


def test_hard_questions_reward_and_easy_questions_punish():
    hard, easy = torch.tensor([1.0] + [0.0] * 7), torch.tensor([1.0] * 7 + [0.0])
    weights_hard, weights_easy = grpo_lead(hard, 8) / grpo(hard, 8), grpo_lead(easy, 8) / grpo(easy, 8)
    assert weights_hard[0] > 1.4 > weights_easy[0]
    assert weights_easy[7] > 1.4 > weights_hard[7]


def test_equal_least_and_greatest_weights_scale_grpo():
    rewards = torch.tensor([1.0, 0.0, 0.5, 2.0])
    torch.testing.assert_close(grpo_lead(rewards, 4, least=2.0, greatest=2.0), 2 * grpo(rewards, 4))

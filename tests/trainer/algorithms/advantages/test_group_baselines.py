"""The numbers of GRPO and its nearest relatives, by hand and by a second way."""

import math
import statistics
from fractions import Fraction

import pytest
import torch
from hypothesis import given

from evenkeel.trainer.algorithms.advantages.group_baselines import (
    dr_grpo,
    gpg,
    grpo,
    maxrl,
    opo,
    reinforce_pp,
    rloo,
    wapo,
)
from tests.trainer.algorithms.advantages.rollouts import NAN, estimate, property_test, rollouts

mixed_rollouts = rollouts(lowest=-16, highest=24, min_group_size=2)


def judged_groups(rewards, group_size):
    """The judged rewards of each group."""
    return [
        [Fraction(reward) for reward in group.tolist() if not math.isnan(reward)] for group in rewards.split(group_size)
    ]


def expected(rewards, group_size, advantage_of_reward):
    """Apply ``advantage_of_reward(reward, judged rewards of its group)`` to each judged reward that is not dead."""
    result = []
    for group, judged in zip(rewards.split(group_size), judged_groups(rewards, group_size), strict=True):
        for reward in group.tolist():
            if math.isnan(reward):
                result.append(NAN)
            elif len(set(judged)) == 1:
                result.append(0.0)
            else:
                result.append(float(advantage_of_reward(Fraction(reward), judged)))
    return torch.tensor(result)


@property_test
@given(mixed_rollouts)
def test_grpo_is_the_z_score_with_ddof_1(rollout):
    rewards, group_size = rollout["rewards"], rollout["group_size"]
    torch.testing.assert_close(
        grpo(rewards, group_size),
        expected(
            rewards,
            group_size,
            lambda reward, judged: float(reward - statistics.mean(judged)) / (statistics.stdev(judged) + 1e-4),
        ),
        equal_nan=True,
        rtol=1e-5,
        atol=1e-6,
    )


@property_test
@given(mixed_rollouts)
def test_dr_grpo_is_the_distance_from_the_group_mean(rollout):
    rewards, group_size = rollout["rewards"], rollout["group_size"]
    torch.testing.assert_close(
        dr_grpo(rewards, group_size),
        expected(rewards, group_size, lambda reward, judged: reward - statistics.mean(judged)),
        equal_nan=True,
    )


@property_test
@given(mixed_rollouts)
def test_rloo_is_the_distance_from_the_mean_of_the_others(rollout):
    rewards, group_size = rollout["rewards"], rollout["group_size"]

    def distance_from_others(reward, judged):
        others = list(judged)
        others.remove(reward)
        return reward - statistics.mean(others)

    torch.testing.assert_close(
        rloo(rewards, group_size), expected(rewards, group_size, distance_from_others), equal_nan=True
    )


@property_test
@given(mixed_rollouts)
def test_reinforce_pp_whitens_over_the_batch(rollout):
    rewards, group_size = rollout["rewards"], rollout["group_size"]
    centred = [
        reward - statistics.mean(judged) for judged in judged_groups(rewards, group_size) if judged for reward in judged
    ]
    std = statistics.stdev(centred) if len(centred) > 1 else 1.0
    torch.testing.assert_close(
        reinforce_pp(rewards, group_size),
        expected(rewards, group_size, lambda reward, judged: float(reward - statistics.mean(judged)) / (std + 1e-8)),
        equal_nan=True,
        rtol=1e-5,
        atol=1e-6,
    )


def test_grpo_by_hand():
    # judged 1, 0, 1, 1: mean 3/4, squared distances 3·(1/4)² + (3/4)² = 3/4, ddof 1: variance 1/4, std 1/2.
    # A = (1 − 3/4) / 0.5001 = 0.4999 and (0 − 3/4) / 0.5001 = −1.4997.
    result = grpo(torch.tensor([1.0, 0.0, NAN, 1.0, 1.0]), 5)
    expected_values = torch.tensor([0.25 / 0.5001, -0.75 / 0.5001, NAN, 0.25 / 0.5001, 0.25 / 0.5001])
    torch.testing.assert_close(result, expected_values, equal_nan=True)


def test_rloo_by_hand():
    # 1 − (0 + 1 + 1)/3 = 1/3; 0 − (1 + 1 + 1)/3 = −1: 4/3 of the centred 1/4 and −3/4.
    result = rloo(torch.tensor([1.0, 0.0, 1.0, NAN, 1.0]), 5)
    torch.testing.assert_close(result, torch.tensor([1 / 3, -1.0, 1 / 3, NAN, 1 / 3]), equal_nan=True)


def test_reinforce_pp_by_hand():
    # Centred: −1/2, 1/2, −2, 2, and a dead group 0, 0. Sum of squares 2·1/4 + 2·4 = 8.5 over ddof 5: variance 1.7.
    result = reinforce_pp(torch.tensor([0.0, 1.0, 0.0, 4.0, 0.7, 0.7]), 2)
    torch.testing.assert_close(result, torch.tensor([-0.5, 0.5, -2.0, 2.0, 0.0, 0.0]) / 1.7**0.5)


def test_epsilons_are_those_of_the_published_algorithms():
    # Two rewards 0 and d: mean d/2, std d/√2. d = 2e-4: grpo 1e-4 / (√2·1e-4 + 1e-4) = 1/(√2 + 1) = √2 − 1.
    standardised = grpo(torch.tensor([0.0, 2e-4], dtype=torch.float64), 2)
    torch.testing.assert_close(standardised[1].item(), 2**0.5 - 1)
    # The same with d = 2e-8 and ε = 1e-8.
    whitened = reinforce_pp(torch.tensor([0.0, 2e-8], dtype=torch.float64), 2)
    torch.testing.assert_close(whitened[1].item(), 2**0.5 - 1)


def test_double_precision_rewards_keep_their_precision():
    # 0 six times and 1: mean 1/7, variance (6/49 + 36/49)/6 = 1/7.
    result = grpo(torch.tensor([0.0] * 6 + [1.0], dtype=torch.float64), 7)
    torch.testing.assert_close(result[6].item(), (6 / 7) / ((1 / 7) ** 0.5 + 1e-4), rtol=1e-12, atol=0.0)


def test_opo_by_hand():
    # Lengths 1, 3, 4 and an unjudged row: baseline (1·1 + 3·0 + 4·2) / 8 = 9/8.
    result = opo(torch.tensor([1.0, 0.0, NAN, 2.0]), 4, torch.tensor([1, 3, 100, 4]))
    torch.testing.assert_close(result, torch.tensor([-1 / 8, -9 / 8, NAN, 7 / 8]), equal_nan=True)


def test_opo_without_any_token_keeps_the_plain_mean():
    rewards = torch.tensor([1.0, 0.0, NAN, 1.0])
    result = opo(rewards, 4, torch.zeros(4, dtype=torch.long))
    torch.testing.assert_close(result, dr_grpo(rewards, 4), equal_nan=True)


@property_test
@given(mixed_rollouts)
def test_opo_weighted_by_length_sums_to_zero(rollout):
    weighted = (rollout["lengths"] * estimate("opo", rollout)).nan_to_num()
    for group in weighted.split(rollout["group_size"]):
        assert group.sum().abs() <= 1e-5 * group.abs().sum()


def test_gpg_by_hand():
    # Five judged rewards of which two are not 0: α = 5/2. Centred: ±1/2 and 1 − 1/3, −1/3, −1/3.
    result = gpg(torch.tensor([1.0, 0.0, NAN, 1.0, 0.0, 0.0]), 3)
    torch.testing.assert_close(result, 2.5 * torch.tensor([0.5, -0.5, NAN, 2 / 3, -1 / 3, -1 / 3]), equal_nan=True)
    torch.testing.assert_close(gpg(torch.tensor([1.0, 0.0]), 2, f_norm=4.0), torch.tensor([0.25, -0.25]))


def test_maxrl_by_hand():
    # One right of four: μ = 1/4: (3/4)/(1/4) = 3 and −1. Three of four: μ = 3/4: 1/3 and −1.
    result = maxrl(torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]), 4)
    torch.testing.assert_close(result, torch.tensor([3, -1, -1, -1, 1 / 3, 1 / 3, 1 / 3, -1]), rtol=1e-5, atol=0.0)


def test_maxrl_refuses_negative_rewards():
    with pytest.raises(ValueError, match=r"a reward is -0\.5"):
        maxrl(torch.tensor([1.0, -0.5, NAN, 0.0]), 4)


def test_winners_alone_are_trained():
    rewards = torch.tensor([1.0, 0.0, NAN, 0.5, 1.0, 1.0, 1.0, 1.0])  # mean 1/2 of three: 1/2 is no winner
    torch.testing.assert_close(wapo(rewards, 4), torch.tensor([0.5, 0.0, NAN, 0.0, 0.0, 0.0, 0.0, 0.0]), equal_nan=True)

"""The numbers of GRPO and its nearest relatives, by hand and by a second way."""

import math
import statistics
from fractions import Fraction

import pytest
import torch
from hypothesis import given

from evenkeel.trainer.algorithms.advantages.group_baselines import dr_grpo, grpo, reinforce_pp, rloo
from tests.trainer.algorithms.advantages.rollouts import NAN, property_test, rollouts


def scored_groups(rewards, group_size):
    """The scored rewards of each group."""
    return [
        [Fraction(reward) for reward in group.tolist() if not math.isnan(reward)] for group in rewards.split(group_size)
    ]


def expected(rewards, group_size, advantage_of_reward):
    """Apply ``advantage_of_reward(reward, scored rewards of its group)`` to each scored reward that is not dead."""
    result = []
    for group, scored in zip(rewards.split(group_size), scored_groups(rewards, group_size), strict=True):
        for reward in group.tolist():
            if math.isnan(reward):
                result.append(NAN)
            elif len(set(scored)) == 1:
                result.append(0.0)
            else:
                result.append(float(advantage_of_reward(Fraction(reward), scored)))
    return torch.tensor(result)


FORMULAS = {
    grpo: lambda reward, scored: float(reward - statistics.mean(scored)) / (statistics.stdev(scored) + 1e-4),
    dr_grpo: lambda reward, scored: reward - statistics.mean(scored),
    rloo: lambda reward, scored: reward - (sum(scored) - reward) / (len(scored) - 1),
}


@pytest.mark.parametrize("estimator", FORMULAS, ids=lambda function: function.__name__)
@property_test
@given(rollouts())
def test_estimators_are_their_formulas_in_exact_fractions(estimator, rollout):
    rewards, group_size = rollout["rewards"], rollout["group_size"]
    exact = expected(rewards, group_size, FORMULAS[estimator])
    torch.testing.assert_close(estimator(rewards, group_size), exact, equal_nan=True, rtol=1e-5, atol=1e-6)


@property_test
@given(rollouts())
def test_reinforce_pp_whitens_over_the_batch(rollout):
    rewards, group_size = rollout["rewards"], rollout["group_size"]
    groups = [scored for scored in scored_groups(rewards, group_size) if scored]
    centred = [reward - statistics.mean(scored) for scored in groups for reward in scored]
    std = statistics.stdev(centred) if len(centred) > 1 else 1.0
    exact = expected(rewards, group_size, lambda reward, scored: float(reward - statistics.mean(scored)) / (std + 1e-8))
    torch.testing.assert_close(reinforce_pp(rewards, group_size), exact, equal_nan=True, rtol=1e-5, atol=1e-6)


def test_epsilons_are_those_of_the_published_algorithms():
    # Two rewards 0 and d: mean d/2, std d/√2. d = 2e-4: grpo 1e-4 / (√2·1e-4 + 1e-4) = 1/(√2 + 1) = √2 − 1.
    standardised = grpo(torch.tensor([0.0, 2e-4], dtype=torch.float64), 2)
    torch.testing.assert_close(standardised[1].item(), 2**0.5 - 1)
    # The same with d = 2e-8 and ε = 1e-8.
    whitened = reinforce_pp(torch.tensor([0.0, 2e-8], dtype=torch.float64), 2)
    torch.testing.assert_close(whitened[1].item(), 2**0.5 - 1)

"""The contract that every advantage estimator keeps, and the numbers of each, by hand and by a second way.

`rollouts` draws rewards in eighths: sums of them are exact in float32, so the properties have tight tolerances.
"""

import math
import statistics
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.algorithms import advantages
from trainer.algorithms.strategies import ADVANTAGES

NAN = float("nan")
PER_RESPONSE = ["grpo", "dr_grpo", "rloo", "reinforce_pp", "exchangeable"]
PREFIX_TREE = {"name": "exchangeable", "prefix_tree": True}
TOKEN_CLASS = {"name": "exchangeable", "token_class": True, "correlation_threshold": 0.5}

property_test = settings(max_examples=15, deadline=None, derandomize=True)


def estimators(*specs):
    return pytest.mark.parametrize(
        "estimator",
        [ADVANTAGES.build(spec) for spec in specs],
        ids=lambda part: "-".join(
            [part.name, *(option for option in part.options if option != "correlation_threshold")]
        ),
    )


every_estimator = estimators(*PER_RESPONSE, PREFIX_TREE, TOKEN_CLASS)


@st.composite
def rollouts(draw, unjudged=True):
    """(rewards, group_size, inputs): one to three groups of two to six responses over an alphabet of two tokens."""
    group_size, num_groups = draw(st.integers(2, 6)), draw(st.integers(1, 3))
    num_responses, length = group_size * num_groups, 5
    eighths = st.integers(-16, 24).map(lambda count: count / 8)
    reward = st.one_of(eighths, st.sampled_from([0.0, 1.0]), *([st.just(NAN)] if unjudged else []))
    rewards = draw(st.lists(reward, min_size=num_responses, max_size=num_responses))
    tokens = draw(st.lists(st.integers(1, 2), min_size=num_responses * length, max_size=num_responses * length))
    lengths = torch.tensor(draw(st.lists(st.integers(1, length), min_size=num_responses, max_size=num_responses)))
    mask = (torch.arange(length) < lengths[:, None]).long()
    inputs = {
        "lengths": lengths,
        "completion_ids": torch.tensor(tokens).view(num_responses, length) * mask,
        "mask": mask,
        "sequence_weights": torch.ones(num_responses),
    }
    return torch.tensor(rewards), group_size, inputs


def rows(result):
    """(N, T) whatever the estimator credits."""
    return result if result.dim() == 2 else result[:, None]


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


@every_estimator
@property_test
@given(rollouts())
def test_exactly_the_unjudged_responses_get_nan(estimator, rollout):
    rewards, group_size, inputs = rollout
    result = rows(estimator(rewards, group_size, **inputs))
    assert torch.equal(result.isnan().any(1), rewards.isnan())
    assert torch.equal(result.isnan().all(1), rewards.isnan())
    assert not result.isinf().any()


@every_estimator
@pytest.mark.parametrize("value", [0.2, 0.7, 0.0, -1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_equal_rewards_get_exact_zeros(estimator, value, dtype):
    rewards = torch.tensor([value] * 8 + [NAN, value] * 4 + [NAN] * 7 + [value] + [0.0, 1.0] * 4, dtype=dtype)
    mask = torch.ones(32, 3, dtype=torch.long)
    ids = torch.arange(96).view(32, 3) % 5
    result = rows(estimator(rewards, 8, completion_ids=ids, mask=mask, sequence_weights=torch.ones(32)))
    assert (result[:24][~rewards[:24].isnan()] == 0).all()
    assert (result[24:] != 0).any()
    assert result.dtype == dtype


@every_estimator
def test_a_group_without_any_verdict_is_nan_and_leaves_the_others_alone(estimator):
    rewards = torch.tensor([NAN, NAN, NAN, 0.0, 1.0, 1.0])
    mask = torch.ones(6, 2, dtype=torch.long)
    inputs = {"mask": mask, "completion_ids": mask, "sequence_weights": torch.ones(6)}
    result = rows(estimator(rewards, 3, **inputs))
    alone = rows(estimator(rewards[3:], 3, **{name: value[3:] for name, value in inputs.items()}))
    assert result[:3].isnan().all()
    assert torch.equal(result[3:], alone)


@estimators(*PER_RESPONSE)
@property_test
@given(rollouts())
def test_advantages_of_a_group_sum_to_zero(estimator, rollout):
    rewards, group_size, inputs = rollout
    for group in estimator(rewards, group_size, **inputs).nan_to_num().split(group_size):
        assert group.sum().abs() <= 1e-5 * group.abs().sum()


@every_estimator
@property_test
@given(rollouts(), st.integers(-40, 40))
def test_adding_a_constant_to_a_group_changes_nothing(estimator, rollout, eighths):
    rewards, group_size, inputs = rollout
    shifted = rewards.clone()
    shifted[:group_size] += eighths / 8
    torch.testing.assert_close(
        estimator(shifted, group_size, **inputs),
        estimator(rewards, group_size, **inputs),
        equal_nan=True,
        rtol=1e-4,
        atol=1e-4,
    )


@every_estimator
@property_test
@given(rollouts(), st.randoms(use_true_random=False))
def test_the_order_inside_a_group_does_not_matter(estimator, rollout, random):
    rewards, group_size, inputs = rollout
    order = list(range(len(rewards)))
    for start in range(0, len(rewards), group_size):
        order[start : start + group_size] = random.sample(order[start : start + group_size], group_size)
    permuted = estimator(rewards[order], group_size, **{name: value[order] for name, value in inputs.items()})
    torch.testing.assert_close(
        permuted, estimator(rewards, group_size, **inputs)[order], equal_nan=True, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("estimator", [advantages.dr_grpo, advantages.rloo], ids=lambda function: function.__name__)
@property_test
@given(rollouts())
def test_centred_rewards_scale_with_the_rewards(estimator, rollout):
    rewards, group_size, _ = rollout
    assert torch.equal(
        (4 * estimator(rewards, group_size)).nan_to_num(), estimator(4 * rewards, group_size).nan_to_num()
    )


@estimators("grpo", "reinforce_pp", "exchangeable", PREFIX_TREE, TOKEN_CLASS)
@property_test
@given(rollouts())
def test_normalised_advantages_do_not_scale_with_the_rewards(estimator, rollout):
    rewards, group_size, inputs = rollout
    large = estimator(2.0**20 * rewards, group_size, **inputs)  # ε no longer counts
    torch.testing.assert_close(
        large, estimator(2.0**24 * rewards, group_size, **inputs), equal_nan=True, rtol=1e-4, atol=1e-6
    )


@property_test
@given(rollouts())
def test_grpo_is_the_z_score_with_ddof_1(rollout):
    rewards, group_size, _ = rollout
    torch.testing.assert_close(
        advantages.grpo(rewards, group_size),
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
@given(rollouts())
def test_dr_grpo_is_the_distance_from_the_group_mean(rollout):
    rewards, group_size, _ = rollout
    torch.testing.assert_close(
        advantages.dr_grpo(rewards, group_size),
        expected(rewards, group_size, lambda reward, judged: reward - statistics.mean(judged)),
        equal_nan=True,
    )


@property_test
@given(rollouts())
def test_rloo_is_the_distance_from_the_mean_of_the_others(rollout):
    rewards, group_size, _ = rollout

    def distance_from_others(reward, judged):
        others = list(judged)
        others.remove(reward)
        return reward - statistics.mean(others)

    torch.testing.assert_close(
        advantages.rloo(rewards, group_size), expected(rewards, group_size, distance_from_others), equal_nan=True
    )


@property_test
@given(rollouts())
def test_reinforce_pp_whitens_over_the_batch(rollout):
    rewards, group_size, _ = rollout
    centred = [
        reward - statistics.mean(judged) for judged in judged_groups(rewards, group_size) if judged for reward in judged
    ]
    std = statistics.stdev(centred) if len(centred) > 1 else 1.0
    torch.testing.assert_close(
        advantages.reinforce_pp(rewards, group_size),
        expected(rewards, group_size, lambda reward, judged: float(reward - statistics.mean(judged)) / (std + 1e-8)),
        equal_nan=True,
        rtol=1e-5,
        atol=1e-6,
    )


def test_grpo_by_hand():
    # judged 1, 0, 1, 1: mean 3/4, squared distances 3·(1/4)² + (3/4)² = 3/4, ddof 1: variance 1/4, std 1/2.
    # A = (1 − 3/4) / 0.5001 = 0.4999 and (0 − 3/4) / 0.5001 = −1.4997.
    result = advantages.grpo(torch.tensor([1.0, 0.0, NAN, 1.0, 1.0]), 5)
    expected_values = torch.tensor([0.25 / 0.5001, -0.75 / 0.5001, NAN, 0.25 / 0.5001, 0.25 / 0.5001])
    torch.testing.assert_close(result, expected_values, equal_nan=True)


def test_rloo_by_hand():
    # 1 − (0 + 1 + 1)/3 = 1/3; 0 − (1 + 1 + 1)/3 = −1: 4/3 of the centred 1/4 and −3/4.
    result = advantages.rloo(torch.tensor([1.0, 0.0, 1.0, NAN, 1.0]), 5)
    torch.testing.assert_close(result, torch.tensor([1 / 3, -1.0, 1 / 3, NAN, 1 / 3]), equal_nan=True)


def test_reinforce_pp_by_hand():
    # Centred: −1/2, 1/2, −2, 2, and a dead group 0, 0. Sum of squares 2·1/4 + 2·4 = 8.5 over ddof 5: variance 1.7.
    result = advantages.reinforce_pp(torch.tensor([0.0, 1.0, 0.0, 4.0, 0.7, 0.7]), 2)
    torch.testing.assert_close(result, torch.tensor([-0.5, 0.5, -2.0, 2.0, 0.0, 0.0]) / 1.7**0.5)


def test_epsilons_are_those_of_the_published_algorithms():
    # Two rewards 0 and d: mean d/2, std d/√2. d = 2e-4: grpo 1e-4 / (√2·1e-4 + 1e-4) = 1/(√2 + 1) = √2 − 1.
    grpo = advantages.grpo(torch.tensor([0.0, 2e-4], dtype=torch.float64), 2)
    torch.testing.assert_close(grpo[1].item(), 2**0.5 - 1)
    # The same with d = 2e-8 and ε = 1e-8.
    reinforce_pp = advantages.reinforce_pp(torch.tensor([0.0, 2e-8], dtype=torch.float64), 2)
    torch.testing.assert_close(reinforce_pp[1].item(), 2**0.5 - 1)


def test_double_precision_rewards_keep_their_precision():
    # 0 six times and 1: mean 1/7, variance (6/49 + 36/49)/6 = 1/7.
    result = advantages.grpo(torch.tensor([0.0] * 6 + [1.0], dtype=torch.float64), 7)
    torch.testing.assert_close(result[6].item(), (6 / 7) / ((1 / 7) ** 0.5 + 1e-4), rtol=1e-12, atol=0.0)


def test_dead_groups_marks_rows_without_differing_verdicts():
    rewards = torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2, 0.3, NAN, 0.7, NAN, NAN, NAN, NAN])
    dead = advantages.dead_groups(rewards, 3)
    assert dead.tolist() == [True] * 3 + [False] * 3 + [True] * 6

"""The exchangeable baseline: shared tokens cancel, whatever the loss weights trajectories by."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.advantages.exchangeable import (
    exchangeable,
    exchangeable_prefix_tree,
    exchangeable_token_class,
)
from evenkeel.trainer.algorithms.advantages.group_baselines import grpo, rloo
from tests.trainer.algorithms.advantages.rollouts import NAN, property_test, rollouts


def prefix_tree(rewards, group_size, completion_ids, weights=None):
    weights = torch.ones_like(rewards) if weights is None else weights
    return exchangeable_prefix_tree(rewards, group_size, completion_ids, weights)


def token_class(rewards, group_size, completion_ids, mask, weights=None, **options):
    weights = torch.ones_like(rewards) if weights is None else weights
    return exchangeable_token_class(rewards, group_size, completion_ids, mask, weights, **options)


def group_std(rewards):
    """σ + ε of one group, by numpy."""
    return np.nanstd(rewards.double().numpy(), ddof=1) + 1e-4


@property_test
@given(rollouts(), st.randoms(use_true_random=False))
def test_weighted_advantages_of_a_group_sum_to_zero(rollout, random):
    rewards, group_size = rollout["rewards"], rollout["group_size"]
    weights = torch.tensor([random.choice([0.0, 1 / 3, 1.0, 7.5]) for _ in rewards])
    advantages = exchangeable(rewards, group_size, sequence_weights=weights)
    for group in (weights * advantages).nan_to_num().split(group_size):
        assert group.sum().abs() <= 1e-5 * group.abs().sum()


@pytest.mark.parametrize("weight", [1.0, 1 / 7])
@property_test
@given(rewards=st.lists(st.one_of(st.floats(-2, 3, width=32), st.just(NAN)), min_size=8, max_size=8))
def test_constant_weights_give_grpo_bit_for_bit(weight, rewards):
    rewards = torch.tensor(rewards)
    result, reference = exchangeable(rewards, 4, torch.full((8,), weight)), grpo(rewards, 4)
    assert torch.equal(result.isnan(), reference.isnan())
    assert torch.equal(result.nan_to_num(), reference.nan_to_num())


def test_weighted_baseline_by_hand():
    # k = 1, 1/2, 1/4 and an unscored row: b = (1·1 + 1/2·0 + 1/4·3) / (7/4) = 1.
    # Rewards 1, 0, 3: mean 4/3, squares 1/9 + 16/9 + 25/9 = 14/3, ddof 1: variance 7/3.
    weights = torch.tensor([1.0, 0.5, 100.0, 0.25])
    result = exchangeable(torch.tensor([1.0, 0.0, NAN, 3.0]), 4, sequence_weights=weights)
    scale = (7 / 3) ** 0.5 + 1e-4
    torch.testing.assert_close(result, torch.tensor([0.0, -1 / scale, NAN, 2 / scale]), equal_nan=True)


def test_a_group_whose_weights_are_all_zero_gets_the_group_mean():
    rewards = torch.tensor([1.0, 0.0, 3.0, 1.0, 0.0, 0.0])
    weights = torch.tensor([0.0, 0.0, 0.0, 1.0, 2.0, 0.0])
    result = exchangeable(rewards, 3, sequence_weights=weights)
    assert torch.equal(result[:3], grpo(rewards, 3)[:3])
    assert result.isfinite().all()


def literal_prefix_tree(rewards, group_size, completion_ids):
    """The definition read aloud: a dictionary from each prefix to the members that pass through it."""
    result = np.full(completion_ids.shape, np.nan)
    for start in range(0, len(rewards), group_size):
        rows = range(start, start + group_size)
        scored = [row for row in rows if not rewards[row].isnan()]
        members = {}
        for row in scored:
            for depth in range(completion_ids.shape[1] + 1):
                members.setdefault(tuple(completion_ids[row, :depth].tolist()), set()).add(row)
        for row in scored:
            for token in range(completion_ids.shape[1]):
                if len({rewards[other].item() for other in scored}) < 2:
                    result[row, token] = 0.0
                    continue
                prefix = tuple(completion_ids[row, :token].tolist())
                while len(members[prefix]) < 2:
                    prefix = prefix[:-1]
                baseline = np.mean([rewards[other].item() for other in members[prefix] - {row}])
                scale = group_std(rewards[start : start + group_size])
                result[row, token] = (rewards[row].item() - baseline) / scale
    return torch.tensor(result, dtype=torch.float32)


@property_test
@given(rollouts())
def test_prefix_tree_equals_its_definition(rollout):
    rewards, group_size, inputs = rollout["rewards"], rollout["group_size"], rollout
    torch.testing.assert_close(
        prefix_tree(rewards, group_size, inputs["completion_ids"]),
        literal_prefix_tree(rewards, group_size, inputs["completion_ids"]),
        equal_nan=True,
        rtol=1e-4,
        atol=1e-5,
    )


def test_prefix_tree_leaves_masked_responses_out_and_still_cancels():
    rewards, weights = torch.tensor([1.0, 0.0, 3.0, 0.25]), torch.tensor([2.0, 2.0, 2.0, 0.0])
    result = prefix_tree(rewards, 4, torch.ones(4, 3, dtype=torch.long), weights)
    torch.testing.assert_close(result[:3], rloo(rewards[:3], 3)[:, None].expand(3, 3) / group_std(rewards))
    assert result.isfinite().all()


@property_test
@given(rollouts(), st.randoms(use_true_random=False))
def test_weak_token_classes_leave_no_residual(rollout, random):
    rewards, group_size, inputs = rollout["rewards"], rollout["group_size"], rollout
    weights = torch.tensor([random.choice([1 / 3, 1.0, 7.5]) for _ in rewards])
    always = 2.0  # |corr| < 2: every class that all scored responses contain is weak
    advantages = token_class(
        rewards, group_size, inputs["completion_ids"], inputs["mask"], weights, correlation_threshold=always
    )
    contributions = (weights[:, None] * advantages * inputs["mask"]).nan_to_num()
    for start in range(0, len(rewards), group_size):
        group = slice(start, start + group_size)
        ids, mask, scored = inputs["completion_ids"][group], inputs["mask"][group].bool(), ~rewards[group].isnan()
        for token in (1, 2):
            if not ((ids == token) & mask).any(1)[scored].all():
                continue
            of_class = contributions[group][(ids == token) & mask]
            assert of_class.sum().abs() <= 1e-5 * of_class.abs().sum() + 1e-6


def test_token_class_by_hand():
    # Counts of token 7: 1, 2, 1, 2 against rewards 1, 1, 0, 0: uncorrelated, so weak. k = 1, 1, 1, 1/2:
    # b_7 = (1·1 + 2·1) / (1 + 2 + 1 + 1) = 3/5; b = 2 / 3.5 = 4/7 for all others.
    # Token 8 (counts 2, 2, 1, 1) follows the reward; token 9 is missing in the last response.
    rewards, weights = torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, 0.5])
    ids = torch.tensor([[7, 8, 8, 9, 0], [7, 7, 8, 8, 9], [7, 8, 9, 0, 0], [7, 7, 8, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0]])
    result = token_class(rewards, 4, ids, mask, weights)
    baseline = torch.full((4, 5), 4 / 7).masked_fill(ids == 7, 3 / 5)
    expected = (rewards[:, None] - baseline) / ((1 / 3) ** 0.5 + 1e-4)
    torch.testing.assert_close(result, expected)


def test_the_correlation_decides_which_classes_are_weak():
    # Counts 1, 2, 3, 2 against 1, 1, 0, 0: centred (−1, 0, 1, 0) · (½, ½, −½, −½) = −1, norms √2 and 1: corr −1/√2.
    rewards = torch.tensor([1.0, 1.0, 0.0, 0.0])
    mask = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0]])
    ids = 7 * mask
    sequence_level = grpo(rewards, 4)[:, None].expand(4, 3)

    def with_threshold(threshold):
        return token_class(rewards, 4, ids, mask, correlation_threshold=threshold)

    assert torch.equal(with_threshold(0.70), sequence_level)
    assert not torch.allclose(with_threshold(0.71), sequence_level, atol=1e-2)

"""Min-replace and adv-orthogonal: the identities of arXiv 2604.13088 v1, by hand and for any weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenkeel.trainer.algorithms.sequence_weights import adv_orthogonal, min_replace

fast = settings(max_examples=25, deadline=None, derandomize=True)
thorough = settings(max_examples=200, deadline=None)
weights_of_two_groups = npst.arrays("float32", 8, elements=st.floats(0.0078125, 128, width=32)).map(torch.from_numpy)
rewards_of_two_groups = npst.arrays("float32", 8, elements=st.sampled_from([0.0, 0.5, 1.0])).map(torch.from_numpy)
judgements = npst.arrays("bool", 8).map(torch.from_numpy)
permutations = st.permutations(range(8)).map(torch.tensor)
GROUPS = torch.tensor([7, 7, 7, 7, 2, 2, 2, 2])
ALL = torch.ones(8, dtype=torch.bool)


def one_group(transform, weights, advantages, counted=None):
    weights, advantages = torch.tensor(weights), torch.tensor(advantages)
    counted = torch.ones(len(weights), dtype=torch.bool) if counted is None else torch.tensor(counted)
    return transform(weights, advantages, torch.zeros(len(weights), dtype=torch.long), counted).tolist()


def centred(rewards, counted):
    """rewards minus their group's mean over counted rows; 0 for the others."""
    grouped = rewards.masked_fill(~counted, torch.nan).view(2, 4)
    return (grouped - grouped.nanmean(1, keepdim=True)).view(-1).nan_to_num(0.0)


def test_two_heavy_and_three_light_trajectories_by_hand():
    weights, advantages = [2.0, 1.0, 1.0, 1.0], [1.0, 1.0, -1.0, -1.0]
    # Aᵀw = 2 + 1 − 1 − 1 = 1, ‖A‖² = 4: w̃ = w − A/4
    assert one_group(adv_orthogonal, weights, advantages) == [1.75, 0.75, 1.25, 1.25]
    assert one_group(min_replace, weights, advantages) == [1.0, 1.0, 1.0, 1.0]


def test_one_right_answer_of_four_by_hand():
    # Aᵀw = 13.5 − 0.5 = 13, ‖A‖² = 2.25 + 0.75 = 3: w̃ = w − (13/3) A = 9 − 6.5, 0 + 13/6, 0 + 13/6, 1 + 13/6
    expected = [2.5, 13 / 6, 13 / 6, 1 + 13 / 6]
    assert one_group(adv_orthogonal, [9.0, 0.0, 0.0, 1.0], [1.5, -0.5, -0.5, -0.5]) == pytest.approx(expected)


def test_a_weight_can_turn_negative_and_is_not_clamped():
    # Aᵀw = 0.1 − 1 = −0.9, ‖A‖² = 2: w̃ = w + 0.45 A
    assert one_group(adv_orthogonal, [0.1, 8.0, 1.0], [1.0, 0.0, -1.0]) == pytest.approx([0.55, 8.0, 0.55])
    # w = (1, 0, 9), A = (1, −2, 1): Aᵀw = 10, ‖A‖² = 6: w̃ = (1 − 5/3, 10/3, 9 − 5/3)
    assert one_group(adv_orthogonal, [1.0, 0.0, 9.0], [1.0, -2.0, 1.0]) == pytest.approx([-2 / 3, 10 / 3, 22 / 3])


@pytest.mark.parametrize("transform", [min_replace, adv_orthogonal])
def test_a_group_without_signal_and_unjudged_rows_keep_their_weights(transform):
    assert one_group(transform, [3.0, 1.0, 2.0], [0.0, 0.0, 0.0]) == [3.0, 1.0, 2.0]
    kept = one_group(transform, [2.0, 0.001, 4.0], [1.0, 0.0, -1.0], [True, False, True])
    assert kept[1] == pytest.approx(0.001)
    # min: 2 for both; orth: Aᵀw = −2, ‖A‖² = 2, so w̃ = w + A = (3, ·, 3)
    expected = {min_replace: [2.0, 2.0], adv_orthogonal: [3.0, 3.0]}[transform]
    assert [kept[0], kept[2]] == expected


def test_the_minimum_does_not_cross_groups():
    weights = torch.tensor([4.0, 3.0, 9.0, 8.0])
    advantages = torch.tensor([1.0, -1.0, -1.0, 1.0])
    result = min_replace(weights, advantages, torch.tensor([5, 1, 5, 1]), torch.ones(4, dtype=torch.bool))
    assert result.tolist() == [4.0, 3.0, 4.0, 3.0]


def cancellation(weights, rewards, counted):
    advantages = centred(rewards, counted)
    for transform in (min_replace, adv_orthogonal):
        terms = (transform(weights, advantages, GROUPS, counted) * advantages).view(2, 4)
        size = (weights * advantages).view(2, 4).abs().sum(1) + 1e-30
        assert ((terms.sum(1).abs() / size) < 1e-6).all(), transform
    sums = adv_orthogonal(weights, advantages, GROUPS, counted).view(2, 4).sum(1)
    torch.testing.assert_close(sums, weights.view(2, 4).sum(1), rtol=1e-5, atol=1e-5)
    smallest = min_replace(weights, advantages, GROUPS, counted)
    assert (smallest <= weights).all()
    assert (smallest >= weights.min()).all()


def equivariance(weights, rewards, counted, order):
    advantages = centred(rewards, counted)
    for transform in (min_replace, adv_orthogonal):
        plain = transform(weights, advantages, GROUPS, counted)
        permuted = transform(weights[order], advantages[order], GROUPS[order], counted[order])
        torch.testing.assert_close(permuted, plain[order], rtol=1e-6, atol=1e-6)
        relabelled = transform(weights, advantages, 100 - GROUPS, counted)
        torch.testing.assert_close(relabelled, plain, rtol=0, atol=0)


@fast
@given(weights_of_two_groups, rewards_of_two_groups, judgements)
def test_contributions_cancel_and_the_total_weight_stays(weights, rewards, counted):
    cancellation(weights, rewards, counted)


@fast
@given(weights_of_two_groups, rewards_of_two_groups, judgements, permutations)
def test_neither_the_order_of_rows_nor_the_names_of_groups_matter(weights, rewards, counted, order):
    equivariance(weights, rewards, counted, order)


@pytest.mark.slow
@thorough
@given(weights_of_two_groups, rewards_of_two_groups, judgements, permutations)
def test_both_identities_on_random_inputs(weights, rewards, counted, order):
    cancellation(weights, rewards, counted)
    equivariance(weights, rewards, counted, order)


@fast
@given(weights_of_two_groups, rewards_of_two_groups)
def test_adv_orthogonal_is_the_nearest_weight_that_cancels(weights, rewards):
    """The projection is idempotent, and what it takes away lies along the advantages."""
    advantages = centred(rewards, ALL)
    once = adv_orthogonal(weights, advantages, GROUPS, ALL)
    torch.testing.assert_close(adv_orthogonal(once, advantages, GROUPS, ALL), once, rtol=1e-5, atol=1e-4)

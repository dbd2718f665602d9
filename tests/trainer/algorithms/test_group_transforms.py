"""Min-replace and adv-orthogonal: the identities of arXiv 2604.13088 v1, by hand and for any weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenkeel.trainer.algorithms.sequence_weights import adv_orthogonal, min_replace

fast = settings(max_examples=25, deadline=None, derandomize=True)
weights_of_two_groups = npst.arrays("float32", 8, elements=st.floats(0.0078125, 128, width=32)).map(torch.from_numpy)
rewards_of_two_groups = npst.arrays("float32", 8, elements=st.sampled_from([0.0, 0.5, 1.0])).map(torch.from_numpy)
judgements = npst.arrays("bool", 8).map(torch.from_numpy)
GROUPS = torch.tensor([7, 7, 7, 7, 2, 2, 2, 2])


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


@fast
@given(weights_of_two_groups, rewards_of_two_groups, judgements)
def test_contributions_cancel_and_the_total_weight_stays(weights, rewards, counted):
    cancellation(weights, rewards, counted)

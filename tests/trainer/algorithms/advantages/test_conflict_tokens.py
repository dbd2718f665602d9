"""GTPO with conflict tokens by hand; numbers of the authors' code are in golden.json."""

import math

import torch
from hypothesis import given

from evenkeel.trainer.algorithms.advantages.conflict_tokens import gtpo_conflict
from tests.trainer.algorithms.advantages.rollouts import property_test, rollouts

TAG, END = 7, 8


def test_what_right_and_wrong_answers_begin_and_end_with_is_not_pushed_down():
    ids = torch.tensor([[TAG, 1, 2, END], [TAG, 3, END, 0], [TAG, 1, END, 0], [TAG, 1, 4, END]])
    mask = (ids > 0).long()
    rewards = torch.tensor([1.0, 0.0, 0.0, 1.0])  # mean 1/2
    found = gtpo_conflict(rewards, 4, ids, mask, torch.zeros(4, 4))
    # the tag, and the 1 behind it that right rows and row 2 share, count from the start; the end token from the end
    expected = [[1.0, 1.0, 0.5, 1.0], [0.0, -0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.5, 1.0]]
    assert found.tolist() == expected
    # right rows alone: nothing is in conflict, and nothing is credited
    assert (gtpo_conflict(torch.ones(4), 4, ids, mask, torch.zeros(4, 4)) == 0).all()


def test_a_token_in_conflict_from_both_sides_weighs_the_square():
    ids = torch.tensor([[TAG, END], [TAG, END]])
    found = gtpo_conflict(
        torch.tensor([1.0, 0.0]), 2, ids, torch.ones_like(ids), torch.zeros(2, 2), conflict_weight=3.0
    )
    assert found.tolist() == [[4.5, 4.5], [0.0, 0.0]]


def test_nothing_is_shared_where_the_other_has_ended():
    ids = torch.tensor([[1, 1, END], [1, END, 0]])  # counted from the end, the first row's last 1 has no partner
    found = gtpo_conflict(torch.tensor([1.0, 0.0]), 2, ids, (ids > 0).long(), torch.zeros(2, 3))
    assert found.tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


def test_entropy_is_paid_for_and_too_much_of_it_leaves_a_response_out():
    ids, mask = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 1], [1, 0]])
    rewards, entropies = torch.tensor([1.0, 0.0]), torch.tensor([[0.2, 0.4], [1.0, 9.0]])
    found = gtpo_conflict(rewards, 2, ids, mask, entropies)  # mean entropies .3 and 1: .5 − .03, and left out
    torch.testing.assert_close(found, torch.tensor([[0.47, 0.47], [0.0, 0.0]]))
    found = gtpo_conflict(rewards, 2, ids, mask, entropies, max_entropy=None)
    torch.testing.assert_close(found, torch.tensor([[0.47, 0.47], [-0.6, 0.0]]))


def test_a_tools_tokens_keep_the_places_of_what_follows():
    ids, rewards = torch.tensor([[1, 9, 5, 2], [3, 9, 5, 4]]), torch.tensor([1.0, 0.0])
    mask = torch.tensor([[1, 0, 1, 1], [1, 0, 1, 1]])
    found = gtpo_conflict(rewards, 2, ids, mask, torch.zeros(2, 4))
    assert found.tolist() == [[0.5, 0.0, 0.5, 0.5], [-0.5, 0.0, -0.5, -0.5]]
    ids[:, 0] = 1  # from the start now, through the tool's token
    found = gtpo_conflict(rewards, 2, ids, mask, torch.zeros(2, 4))
    assert found.tolist() == [[1.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.0, -0.5]]


@property_test
@given(rollouts())
def test_without_weight_and_entropy_only_conflicts_differ_from_the_centred_reward(rollout):
    rewards, mask, group_size = rollout["rewards"], rollout["mask"], rollout["group_size"]
    found = gtpo_conflict(
        rewards, group_size, rollout["completion_ids"], mask, 0 * rollout["entropies"], conflict_weight=1.0
    )
    centred = (rewards - rewards.view(-1, group_size).nanmean(1).repeat_interleave(group_size))[:, None] * mask
    kept = found != 0
    torch.testing.assert_close(found[kept], centred[kept], equal_nan=True, rtol=1e-5, atol=1e-6)
    lost = ~kept & (mask > 0) & (centred.abs() > 1e-6)
    assert (centred[lost] < 0).all()
    assert not math.isnan(found.nan_to_num().sum())

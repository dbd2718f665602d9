"""GTPO with conflict tokens by hand; numbers of the authors' code are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.conflict_tokens import gtpo_conflict

TAG, END = 7, 8


def test_a_token_in_conflict_from_both_sides_weighs_the_square():
    ids = torch.tensor([[TAG, END], [TAG, END]])
    found = gtpo_conflict(
        torch.tensor([1.0, 0.0]), 2, ids, torch.ones_like(ids), torch.zeros(2, 2), conflict_weight=3.0
    )
    assert found.tolist() == [[4.5, 4.5], [0.0, 0.0]]


def test_entropy_is_paid_for_and_too_much_of_it_leaves_a_response_out():
    ids, mask = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 1], [1, 0]])
    rewards, entropies = torch.tensor([1.0, 0.0]), torch.tensor([[0.2, 0.4], [1.0, 9.0]])
    found = gtpo_conflict(rewards, 2, ids, mask, entropies)  # mean entropies .3 and 1: .5 − .03, and left out
    torch.testing.assert_close(found, torch.tensor([[0.47, 0.47], [0.0, 0.0]]))
    found = gtpo_conflict(rewards, 2, ids, mask, entropies, max_entropy=None)
    torch.testing.assert_close(found, torch.tensor([[0.47, 0.47], [-0.6, 0.0]]))

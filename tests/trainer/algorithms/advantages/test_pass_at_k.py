"""The analytic advantage of pass@k against all subsets, written out."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.advantages.pass_at_k import pass_at_k, pass_at_k_max_gap
from tests.trainer.algorithms.advantages.rollouts import NAN, property_test


def by_subsets(rights, k):
    """Mean over the subsets of k that hold response i of (any right − mean over all subsets), over their std."""
    subsets = list(itertools.combinations(range(len(rights)), k))
    passes = [max(rights[member] for member in subset) for subset in subsets]
    mean = sum(passes) / len(passes)
    std = math.sqrt(mean * (1 - mean)) + 1e-6
    result = []
    for row in range(len(rights)):
        own = [passed for subset, passed in zip(subsets, passes, strict=True) if row in subset]
        result.append((sum(own) / len(own) - mean) / std)
    return torch.tensor(result)


@property_test
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=6), st.integers(1, 6))
def test_pass_at_k_is_the_mean_over_all_subsets(rights, k):
    torch.testing.assert_close(pass_at_k(torch.tensor(rights), 6, k=k), by_subsets(rights, k), rtol=1e-4, atol=1e-4)


def test_pass_at_k_by_hand():
    # n = 4, c = 1, k = 2: ρ = 1 − 3/6 = 1/2, σ = 1/2; right: 1; wrong: (1/2 − C(2,1)/C(3,1))·2 = (1/2 − 2/3)·2 = −1/3.
    result = pass_at_k(torch.tensor([1.0, 0.0, 0.0, NAN, 0.0]), 5, k=2)
    torch.testing.assert_close(
        result, torch.tensor([1, -1 / 3, -1 / 3, NAN, -1 / 3]), rtol=1e-5, atol=0.0, equal_nan=True
    )


def test_where_k_responses_cannot_all_be_wrong_nothing_is_left_to_learn():
    assert (pass_at_k(torch.tensor([1.0, 1.0, 0.0, 0.0]), 4, k=3) == 0).all()


def test_a_group_with_few_verdicts_uses_all_it_has():
    few = pass_at_k(torch.tensor([1.0, 0.0, NAN, NAN]), 4, k=4)
    assert (few[:2] == 0).all()  # pass@2 of two, one right: certain


def test_rewards_that_are_no_verdicts_count_from_right_at():
    rewards = torch.tensor([1.1, 0.1, 0.0, 0.1])
    verdicts = torch.tensor([1.0, 0.0, 0.0, 0.0])
    torch.testing.assert_close(pass_at_k(rewards, 4, k=2), pass_at_k(verdicts, 4, k=2))


@pytest.mark.parametrize("k", [0, 5])
def test_a_k_that_no_group_can_fill_is_refused(k):
    with pytest.raises(ValueError, match=f"k = {k}, but a group has 4 responses"):
        pass_at_k(torch.zeros(4), 4, k=k)


def test_max_gap_by_hand():
    # 3, 1, 0: gap 2; mean 4/3, squares (25 + 1 + 16)/9 = 42/9, ddof 1: variance 7/3. Then a tie at the top.
    result = pass_at_k_max_gap(torch.tensor([1.0, 3.0, NAN, 0.0, 2.0, 2.0, 0.0, 1.0]), 4)
    expected = torch.tensor([0.0, 2 / ((7 / 3) ** 0.5 + 1e-4), NAN, 0.0, 0.0, 0.0, 0.0, 0.0])
    torch.testing.assert_close(result, expected, equal_nan=True)


def test_max_gap_of_groups_of_one_is_zero():
    assert (pass_at_k_max_gap(torch.tensor([1.0, 2.0]), 1) == 0).all()

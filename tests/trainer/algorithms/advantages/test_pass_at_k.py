"""The analytic advantage of pass@k against all subsets, written out."""

import itertools
import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.advantages.pass_at_k import pass_at_k
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


def test_a_group_with_few_verdicts_uses_all_it_has():
    few = pass_at_k(torch.tensor([1.0, 0.0, NAN, NAN]), 4, k=4)
    assert (few[:2] == 0).all()  # pass@2 of two, one right: certain


def test_rewards_that_are_no_verdicts_count_from_right_at():
    rewards = torch.tensor([1.1, 0.1, 0.0, 0.1])
    verdicts = torch.tensor([1.0, 0.0, 0.0, 0.0])
    torch.testing.assert_close(pass_at_k(rewards, 4, k=2), pass_at_k(verdicts, 4, k=2))

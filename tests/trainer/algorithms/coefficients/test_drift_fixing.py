"""DFPO: the checks that need no trainer."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenkeel.trainer.algorithms.coefficients.drift_fixing import dfpo_min_replace, dfpo_orthogonal

fast = settings(max_examples=25, deadline=None, derandomize=True)
BOTH = pytest.mark.parametrize("coefficient", [dfpo_min_replace, dfpo_orthogonal])
log_ratios = npst.arrays("float32", (8, 5), elements=st.floats(-0.5, 0.5, width=32)).map(torch.from_numpy)
outcomes = npst.arrays("float32", 8, elements=st.sampled_from([0.0, 1.0])).map(torch.from_numpy)
GROUPS = torch.tensor([3, 3, 3, 3, 1, 1, 1, 1])
MASK = (torch.arange(5) < torch.tensor([5, 2, 4, 1, 3, 5, 5, 2])[:, None]).long()
SCORED = torch.ones(8, dtype=torch.bool)


def of_weights(coefficient, weights, advantages, scored=(True, True, True, True)):
    """The coefficient of one group of responses of one token each, with these ratios."""
    log_ratio, advantages = torch.tensor(weights).log()[:, None], torch.tensor(advantages)[:, None]
    groups, mask = torch.zeros(len(weights), dtype=torch.long), torch.ones_like(log_ratio).long()
    return coefficient(log_ratio, advantages, mask, groups, torch.tensor(scored[: len(weights)]))


def test_the_papers_two_transforms_by_hand():
    weights, advantages = [2.0, 1.0, 1.0, 1.0], [1.0, 1.0, -1.0, -1.0]
    orthogonal = of_weights(dfpo_orthogonal, weights, advantages)
    torch.testing.assert_close(orthogonal, torch.tensor([[1.75], [0.75], [1.25], [1.25]]))
    smallest = of_weights(dfpo_min_replace, weights, advantages)
    torch.testing.assert_close(smallest, torch.ones(4, 1))


@BOTH
def test_groups_without_signal_and_unscored_rows_keep_their_ratio(coefficient):
    dead = of_weights(coefficient, [2.0, 1.0, 0.5], [0.0, 0.0, 0.0])
    torch.testing.assert_close(dead, torch.tensor([[2.0], [1.0], [0.5]]))
    partly = of_weights(coefficient, [2.0, 0.01, 4.0], [1.0, 0.0, -1.0], scored=[True, False, True])
    expected = {dfpo_min_replace: [2.0, 0.01, 2.0], dfpo_orthogonal: [3.0, 0.01, 3.0]}[coefficient]
    torch.testing.assert_close(partly.squeeze(1), torch.tensor(expected))


@BOTH
def test_a_truncated_response_that_no_loss_counts_is_left_out(coefficient):
    log_ratio, advantages = torch.tensor([[0.7], [-5.0], [0.1]]), torch.tensor([[1.0], [3.0], [-1.0]])
    mask, groups, scored = torch.tensor([[1], [0], [1]]), torch.zeros(3, dtype=torch.long), SCORED[:3]
    result = coefficient(log_ratio, advantages, mask, groups, scored).squeeze(1)
    assert (result[[0, 2]] * advantages[[0, 2], 0]).sum().abs() < 1e-6
    assert result[[0, 2]].min() > 1  # the row without tokens, whose ratio is 1, did not become the minimum


@fast
@given(log_ratios, outcomes, st.sampled_from(["product", "geometric"]), st.sampled_from(["none", "inside"]))
def test_the_contributions_to_shared_tokens_cancel(log_ratio, rewards, form, normalization):
    of_groups = rewards.view(2, 4)
    advantages = (of_groups - of_groups.mean(1, keepdim=True)).view(8, 1).expand(8, 5)
    for coefficient in (dfpo_min_replace, dfpo_orthogonal):
        options = {"weight": form, "length_normalization": normalization}
        result = coefficient(log_ratio, advantages, MASK, GROUPS, SCORED, **options)
        terms = (result * advantages[:, :1]).view(2, 4)
        assert (terms.sum(1).abs() <= 2e-6 * terms.abs().sum(1) + 1e-9).all()
        assert not result.requires_grad

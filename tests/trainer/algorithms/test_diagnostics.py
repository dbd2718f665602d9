import pytest
import torch

from evenkeel.trainer.algorithms.diagnostics import (
    gradient_shares,
    group_composition,
    shared_prefix_lengths,
    token_prob_counts,
)


def test_a_shared_prefix_runs_through_what_a_tool_inserted_up_to_the_last_token_that_counts_in_all():
    # A tool's 6 between two counted tokens; 6 inserted last; 6 counted in one row alone; a row that counts nothing.
    ids = torch.tensor([[5, 6, 7, 0]] * 2 + [[5, 6, 0, 0]] * 2 + [[5, 6, 7, 0]] * 2 + [[5, 6, 7, 0]] * 2)
    mask = torch.tensor([[1, 0, 1, 0]] * 2 + [[1, 0, 0, 0]] * 2 + [[1, 1, 1, 0], [1, 0, 1, 0], [1] * 4, [0] * 4])
    assert shared_prefix_lengths(ids, mask, 2)[::2].tolist() == [3, 1, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_a_probability_bin_holds_its_lower_edge(dtype):
    probs = torch.tensor([[0.0, 0.24, 0.25, 0.5, 0.74, 0.75, 1.0, 0.1]], dtype=dtype)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0]])
    assert token_prob_counts(probs, mask).tolist() == [2, 1, 2, 2]


def test_gradient_shares_by_hand():
    """|2|·(1 − 0.1) = 1.8 and |−1|·(1 − 0.2) = 0.8 in one bin; |4|·(1 − 0.5) = 2; the masked 0.9 does not count."""
    probs = torch.tensor([[0.1, 0.2], [0.5, 0.9]])
    advantages = torch.tensor([[2.0, -1.0], [4.0, 100.0]])
    shares = gradient_shares(probs, advantages, torch.tensor([[1, 1], [1, 0]]))
    assert shares.tolist() == pytest.approx([2.6, 0.0, 2.0, 0.0])


def test_group_composition_by_hand():
    """Groups: all right; all wrong, one unscored; mixed; nobody scored. One in four is all right, one all wrong."""
    nan = torch.nan
    correct = torch.tensor([1.0, 1.0, 0.0, nan, 1.0, 0.0, nan, nan])
    assert [share.item() for share in group_composition(correct, 2)] == [0.25, 0.25]

"""A group's passes hold every contribution once, and little padding."""

import pytest
import torch

from evenkeel.trainer.lab.gradients.replay import cuts


def _tokens(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Completions padded with 0, and contributions of two estimators: 1 and 10 at each token."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    counted = torch.tensor([[1.0] * len(row) + [0.0] * (width - len(row)) for row in rows])
    return ids, torch.stack([counted, 10 * counted])


def test_rows_of_like_length_go_together():
    rows = [[1] * 3, [2] * 20, [3] * 15, [4] * 4]
    found = cuts(*_tokens(rows), prompt_length=2)
    assert [tuple(ids.shape) for ids, _ in found] == [(2, 20), (2, 4)]  # 15 + 2 ≥ .7 · 22, 3 + 2 ≥ .7 · 6
    assert found[1][0].tolist() == [[4, 4, 4, 4], [1, 1, 1, 0]]
    assert found[1][1][:, 1].tolist() == [[1, 1, 1, 0], [10, 10, 10, 0]]


def test_equal_rows_are_one_with_the_sum_of_their_contributions():
    ids, contributions = _tokens([[1, 2], [3, 4], [1, 2]])
    contributions[:, 2] *= 3
    ((found, summed),) = cuts(ids, contributions, 1)
    assert sorted(found.tolist()) == [[1, 2], [3, 4]]
    row = found.tolist().index([1, 2])
    assert summed[:, row].tolist() == [[4, 4], [40, 40]]


@pytest.mark.parametrize("counted", [0, 2])
def test_what_nobody_counts_is_not_differentiated(counted: int):
    ids, contributions = _tokens([[1, 2, 3], [4, 5, 6]])
    contributions[:, 0] = 0
    contributions[:, 1, counted:] = 0
    found = cuts(ids, contributions, 1)
    assert [ids.tolist() for ids, _ in found] == ([[[4, 5]]] if counted else [])

"""Unlikeliness: the rarest right answer earns most; the numbers of the authors' loop are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.advantages.likelihood_ranks import unlikeliness

ONES = torch.ones(4, 2, dtype=torch.long)


def test_by_hand():
    # Σ log π = −2, −4, −6, −8: ranks 3, 2, 1, 0 of 4. r' = 1·(1 − ¼·¾) = 13/16, 0, 1·(1 − ¼·¼) = 15/16, 0.
    logps = -torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    result = unlikeliness(torch.tensor([1.0, 0.0, 1.0, 0.0]), 4, logps, ONES)
    torch.testing.assert_close(result, grpo(torch.tensor([13 / 16, 0.0, 15 / 16, 0.0]), 4))


def test_a_group_of_right_answers_is_trained_and_one_of_zeros_is_not():
    logps = -torch.arange(8.0).view(4, 2)
    assert (unlikeliness(torch.ones(4), 4, logps, ONES) != 0).any()
    assert (unlikeliness(torch.zeros(4), 4, logps, ONES) == 0).all()


def test_equal_likelihoods_share_their_rank():
    result = unlikeliness(torch.ones(4), 4, -torch.ones(4, 2), ONES)
    assert (result == 0).all()

"""Unlikeliness: the rarest right answer earns most; the numbers of the authors' loop are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.advantages.likelihood_ranks import unlikeliness
from tests.trainer.algorithms.advantages.rollouts import NAN

ONES = torch.ones(4, 2, dtype=torch.long)


def test_by_hand():
    # Σ log π = −2, −4, −6, −8: ranks 3, 2, 1, 0 of 4. r' = 1·(1 − ¼·¾) = 13/16, 0, 1·(1 − ¼·¼) = 15/16, 0.
    logps = -torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    result = unlikeliness(torch.tensor([1.0, 0.0, 1.0, 0.0]), 4, logps, ONES)
    torch.testing.assert_close(result, grpo(torch.tensor([13 / 16, 0.0, 15 / 16, 0.0]), 4))


def test_the_unjudged_have_no_rank():
    # Three judged: −8 is rank 0, −4 rank 1, −2 rank 2 of 3: r' = 1 − ¼·⅔ = 5/6, 0, 1.
    logps = -torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    result = unlikeliness(torch.tensor([1.0, 0.0, NAN, 1.0]), 4, logps, ONES)
    torch.testing.assert_close(result, grpo(torch.tensor([5 / 6, 0.0, NAN, 1.0]), 4), equal_nan=True)


def test_masked_tokens_do_not_count_and_length_can_be_divided_out():
    logps = -torch.tensor([[3.0, 9.0], [2.0, 2.0]])
    mask = torch.tensor([[1, 0], [1, 1]])
    rewards = torch.ones(2)
    rarer_second = unlikeliness(rewards, 2, logps, mask)  # −3 against −4
    rarer_first = unlikeliness(rewards, 2, logps, mask, length_normalised=True)  # −3 against −2
    assert rarer_second[1] > 0 > rarer_second[0]
    assert rarer_first[0] > 0 > rarer_first[1]


def test_a_group_of_right_answers_is_trained_and_one_of_zeros_is_not():
    logps = -torch.arange(8.0).view(4, 2)
    assert (unlikeliness(torch.ones(4), 4, logps, ONES) != 0).any()
    assert (unlikeliness(torch.zeros(4), 4, logps, ONES) == 0).all()


def test_equal_likelihoods_share_their_rank():
    result = unlikeliness(torch.ones(4), 4, -torch.ones(4, 2), ONES)
    assert (result == 0).all()


def test_no_penalty_is_grpo():
    rewards = torch.tensor([1.0, 0.0, 0.5, 1.0])
    assert torch.equal(unlikeliness(rewards, 4, -torch.rand(4, 2), ONES, rank_penalty=0.0), grpo(rewards, 4))

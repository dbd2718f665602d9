"""Coefficients, and ratios of trajectories, by hand where no published code says what they are."""

import math

import torch

from evenkeel.trainer.algorithms.coefficients.future_kl import fipo
from evenkeel.trainer.algorithms.coefficients.importance_ratios import grpo_fix
from evenkeel.trainer.algorithms.coefficients.tapered import topr
from evenkeel.trainer.algorithms.sequence_weights import trajectory_ratios


def test_grpo_fix_drops_a_token_on_both_sides_of_the_clip_range():
    log_ratio = torch.tensor([[0.79, 0.81, 1.0, 1.27, 1.29]]).log()
    found = grpo_fix(log_ratio, epsilon_high=0.28)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.81, 1.0, 1.27, 0.0]]))


def test_topr_tapers_wrong_answers_by_the_product_of_their_ratios():
    log_ratio = torch.tensor([[0.5, 0.5], [2.0, 0.25], [2.0, 4.0]]).log()
    advantages, mask = torch.tensor([[1.0], [-1.0], [-1.0]]).expand(3, 2), torch.ones(3, 2, dtype=torch.long)
    # right: 1 (though its ratio is 1/4); wrong: 2 · 1/4 = 1/2 for both tokens; wrong: 8, tapered to 1
    expected = torch.tensor([[1.0, 1.0], [0.5, 0.5], [1.0, 1.0]])
    torch.testing.assert_close(topr(log_ratio, advantages, mask), expected)
    by_token = topr(log_ratio, advantages, mask, ratio="token")
    torch.testing.assert_close(by_token, torch.tensor([[1.0, 1.0], [1.0, 0.25], [1.0, 1.0]]))
    geometric = topr(log_ratio, advantages, mask, ratio="geometric")  # √(1/2)
    torch.testing.assert_close(geometric[1], torch.full((2,), math.sqrt(0.5)))


def test_fipo_discounts_over_more_tokens_than_a_block_holds():
    log_ratio = 0.02 * torch.randn(2, 300, generator=torch.Generator().manual_seed(0))
    future = [sum(0.5 ** ((k - t) / 32) * log_ratio[:, k] for k in range(t, 300)) for t in range(300)]
    expected = torch.stack(future, 1).exp().clamp(0.8, 1.2) * log_ratio.exp()
    found = fipo(log_ratio, torch.ones(2, 300), torch.ones(2, 300, dtype=torch.long), high_only=False)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_product_and_geometric_mean_by_hand():
    # ratios 2, 2, 2 (the third is padding) and 1/2, 4, 1: products 4 and 2, geometric means 2 and 2^(1/3)
    log_ratio = torch.tensor([[2.0, 2.0, 2.0], [0.5, 4.0, 1.0]]).log()
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    torch.testing.assert_close(trajectory_ratios(log_ratio, mask, "product"), torch.tensor([4.0, 2.0]))
    torch.testing.assert_close(trajectory_ratios(log_ratio, mask, "geometric"), torch.tensor([2.0, 2 ** (1 / 3)]))


def test_what_stands_on_padding_does_not_matter():
    log_ratio = torch.tensor([[0.5, math.nan], [0.5, math.inf]])
    mask = torch.tensor([[1, 0], [1, 0]])
    torch.testing.assert_close(trajectory_ratios(log_ratio, mask), torch.full((2,), math.exp(0.5)))

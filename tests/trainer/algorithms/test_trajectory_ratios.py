import math

import torch

from evenkeel.trainer.algorithms.sequence_weights import trajectory_ratios


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

"""Entropy as credit, by hand; a third party's GTPO is in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.entropy_shaped import entropy_shaped, gtpo


def test_the_bonus_is_capped_at_half_of_the_advantage():
    # A = ±1/√2·… : with rewards 1e4 and 0, std 1e4/√2, A = ±.7071. α H = .04, .4; cap .35355.
    result = entropy_shaped(torch.tensor([1e4, 0.0]), 2, torch.tensor([[0.1, 1.0], [0.1, 1.0]]))
    half = 0.5**0.5
    expected = torch.tensor([[half + 0.04, 1.5 * half], [-half + 0.04, -half / 2]])
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)


def test_a_single_right_answer_is_not_trained_by_rounding():
    # Alone in O⁺, its r̃ is constant: advantage 0. In single precision 1e-7 of rounding over √1e-8 would be 1e-3.
    generator = torch.Generator().manual_seed(0)
    entropies, lengths = 2 * torch.rand((40, 7), generator=generator), torch.randint(1, 8, (40,), generator=generator)
    mask = (torch.arange(7) < lengths[:, None]).long()
    rewards = (torch.arange(40) % 4 == 0).float()
    assert gtpo(rewards, 4, entropies, mask)[::4].abs().max() < 1e-8

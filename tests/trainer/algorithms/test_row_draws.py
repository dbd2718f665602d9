"""Draws that belong to a row, whatever batch it stands in."""

import torch

from trainer.algorithms.row_draws import row_draws

CONTENT = torch.rand(6, 9, generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(9) < torch.tensor([9, 4, 1, 0, 7, 9])[:, None]).long()


def test_draws_are_uniform_on_tokens_that_count_and_infinite_elsewhere():
    draws = row_draws(CONTENT, MASK, 0)
    assert torch.equal(draws.isinf(), MASK == 0)
    assert ((draws[MASK.bool()] >= 0) & (draws[MASK.bool()] < 1)).all()
    many = row_draws(torch.rand(50, 200), torch.ones(50, 200, dtype=torch.long), 3)
    assert abs(many.mean() - 0.5) < 0.02  # 10,000 draws: 0.5 ± 0.003
    assert many.unique().numel() == many.numel()


def test_a_row_draws_the_same_in_any_batch_and_padding():
    draws = row_draws(CONTENT, MASK, 0)
    for rows in ([0], [5, 1], [4, 3, 2, 1]):
        assert torch.equal(row_draws(CONTENT[rows], MASK[rows], 0), draws[rows])
    assert torch.equal(row_draws(CONTENT[[1, 2], :4], MASK[[1, 2], :4], 0), draws[[1, 2], :4])
    shifted = torch.cat([torch.ones(6, 2), CONTENT], dim=1), torch.cat([torch.zeros_like(MASK[:, :2]), MASK], dim=1)
    assert torch.equal(row_draws(*shifted, 0)[:, 2:], draws)


def test_another_seed_or_content_draws_differently_and_global_randomness_stays():
    state = torch.get_rng_state()
    draws = row_draws(CONTENT, MASK, 0)
    assert not torch.equal(row_draws(CONTENT, MASK, 1)[0], draws[0])
    assert not torch.equal(draws[0], draws[5])
    assert torch.equal(torch.get_rng_state(), state)

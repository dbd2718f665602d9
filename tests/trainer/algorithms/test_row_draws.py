"""Draws that belong to a row, whatever batch it stands in."""

import torch

from evenkeel.trainer.algorithms.row_draws import row_draws, row_keys

KEYS = row_keys(6, 0)
MASK = (torch.arange(9) < torch.tensor([9, 4, 1, 0, 7, 9])[:, None]).long()


def test_draws_are_uniform_on_tokens_that_count_and_infinite_elsewhere():
    draws = row_draws(KEYS, MASK, 0)
    assert torch.equal(draws.isinf(), MASK == 0)
    assert ((draws[MASK.bool()] >= 0) & (draws[MASK.bool()] < 1)).all()
    many = row_draws(row_keys(50, 1), torch.ones(50, 200, dtype=torch.long), 3)
    assert abs(many.mean() - 0.5) < 0.02  # 10,000 draws: 0.5 ± 0.003
    assert many.unique().numel() == many.numel()


def test_a_row_draws_the_same_in_any_batch_and_padding():
    draws = row_draws(KEYS, MASK, 0)
    for rows in ([0], [5, 1], [4, 3, 2, 1]):
        assert torch.equal(row_draws(KEYS[rows], MASK[rows], 0), draws[rows])
    assert torch.equal(row_draws(KEYS[[1, 2]], MASK[[1, 2], :4], 0), draws[[1, 2], :4])
    shifted = torch.cat([torch.zeros_like(MASK[:, :2]), MASK], dim=1)
    assert torch.equal(row_draws(KEYS, shifted, 0)[:, 2:], draws)


def test_another_seed_or_row_draws_differently_and_global_randomness_stays():
    state = torch.get_rng_state()
    draws = row_draws(KEYS, MASK, 0)
    assert not torch.equal(row_draws(KEYS, MASK, 1)[0], draws[0])
    assert not torch.equal(draws[0], draws[5])
    assert torch.equal(torch.get_rng_state(), state)


def test_every_row_of_every_rollout_batch_of_every_run_has_a_key_of_its_own():
    batches = [row_keys(64, *numbers) for numbers in ((0, 0), (0, 1), (1, 0), (1, 1), (0, 11), (11, 0))]
    assert torch.cat(batches).unique().numel() == 6 * 64
    assert torch.equal(batches[0], row_keys(64, 0, 0))

"""Noise and draws by key: distributed as asked for, independent between keys, and decided by the key alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from evenkeel.trainer.algorithms.keyed_noise import _mixed, _wrapped, keyed_draw, row_key
from evenkeel.trainer.algorithms.row_draws import row_draws, row_keys

PROBS = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.04, 0.01, 0.0])
EXPECTED = [0.5, 0.2, 0.15, 0.1, 0.04, 0.01]
MANY = 30_000


def keys(number: int, **changed: int) -> Tensor:
    """Keys as runs have them: neighbouring samples of one prompt."""
    named = {"seed": 0, "batch": 3, **changed}
    return torch.tensor([row_key(**named, prompt_ids=[5, 9, 2], sample=sample) for sample in range(number)])


def drawn(many: Tensor, position: int, probs: Tensor = PROBS) -> Tensor:
    return keyed_draw(probs.expand(len(many), -1), many, position)


@pytest.fixture(scope="module")
def many() -> Tensor:
    return keys(MANY)


def test_the_generator_is_splitmix64():
    """Its first outputs from state 1234567, as its authors' C program prints them (prng.di.unimi.it, splitmix64.c)."""
    gamma = 0x9E3779B97F4A7C15
    states = torch.tensor([_wrapped(1234567 + count * gamma) for count in (1, 2, 3)])
    expected = (6457827717110365317, 3203168211198807973, 9817491932198370423)
    assert _mixed(states).tolist() == [_wrapped(each) for each in expected]


@pytest.mark.parametrize("position", [0, 1000])
def test_words_come_with_their_probabilities(many: Tensor, position: int):
    counts = drawn(many, position).bincount(minlength=7)
    assert counts[6] == 0
    assert chisquare(counts[:6].numpy(), [MANY * p for p in EXPECTED]).pvalue > 1e-4


@pytest.mark.parametrize(
    "other",
    [{"position": 1}, {"seed": 1}, {"batch": 4}, {"shift": 1}],
    ids=["positions", "seeds", "batches", "samples"],
)
def test_draws_of_different_keys_are_independent(many: Tensor, other: dict[str, int]):
    """Of independent draws the pair (a, b) has probability p_a p_b."""
    position, shift = other.get("position", 0), other.get("shift", 0)
    named = {name: value for name, value in other.items() if name in ("seed", "batch")}
    number = 10_000
    first = drawn(many[:number], 0)
    second = drawn(keys(number, **named) if named else many[shift : number + shift], position)
    pairs = (first * 7 + second).bincount(minlength=49).view(7, 7)[:6, :6]
    exact = torch.tensor(EXPECTED, dtype=torch.float64)
    expected = exact[:, None] * exact * number
    pooled = expected >= 5  # a cell that is never expected has no chi-square
    counts = [*pairs[pooled].tolist(), int(pairs[~pooled].sum())]
    assert chisquare(counts, [*expected[pooled].tolist(), float(expected[~pooled].sum())]).pvalue > 1e-4


def test_near_policies_draw_nearly_the_same(many: Tensor):
    """Different words with probability ≤ 2 d / (1 + d); of independent draws it is 1 − Σ p² = .68."""
    moved = PROBS + torch.tensor([-0.03, 0.03, 0, 0, 0, 0, 0])
    differ = float((drawn(many, 0) != drawn(many, 0, moved)).double().mean())
    assert differ + 3 * (differ / MANY) ** 0.5 >= 0.03  # no coupling does better than the distance
    assert differ <= 0.06 / 1.03 + 3 * (0.06 / MANY) ** 0.5


@given(st.permutations(range(12)), st.integers(0, 4000))
@settings(max_examples=25, deadline=None)
def test_a_row_draws_the_same_wherever_it_stands(order: list[int], position: int):
    twelve = keys(12)
    probs = torch.rand(12, 9, generator=torch.Generator().manual_seed(position)).softmax(-1)
    assert torch.equal(keyed_draw(probs, twelve, position)[order], keyed_draw(probs[order], twelve[order], position))


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

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenkeel.trainer.algorithms.row_draws import row_keys
from evenkeel.trainer.algorithms.update_schedules import lopti

KEYS = row_keys(64, 0)
ORDERS = ["low_first", "high_first", "random"]
property_test = settings(max_examples=30, deadline=None, derandomize=True)
token_probs = npst.arrays(
    "float32", (3, 5), elements=st.one_of(st.floats(0, 1, width=32), st.sampled_from([0.25, 0.5]))
).map(torch.from_numpy)
token_masks = npst.arrays("int64", (3, 5), elements=st.integers(0, 1)).map(torch.from_numpy)
every_order = pytest.mark.parametrize("order", ORDERS)


@every_order
@property_test
@given(token_probs, token_masks, st.sampled_from([0.25, 0.4, 0.5]))
def test_the_two_passes_partition_the_mask(order, probs, mask, eta):
    schedule = lopti(eta=eta, order=order)
    assert schedule.num_passes == 2
    first, second = (schedule.kept(probs, mask, index, KEYS[:3]) for index in (0, 1))
    assert not (first & second).any()
    assert torch.equal(first | second, mask.bool())


def test_low_probability_tokens_come_first_and_the_threshold_belongs_to_the_second_pass():
    probs, mask = torch.tensor([[0.1, 0.25, 0.3, 0.0]]), torch.tensor([[1, 1, 1, 0]])
    schedule = lopti(eta=0.25)
    assert schedule.select(probs, mask, 0).tolist() == [[True, False, False, False]]
    assert schedule.select(probs, mask, 1).tolist() == [[False, True, True, False]]


@property_test
@given(token_probs, token_masks)
def test_the_random_control_has_the_size_of_the_low_probability_tokens(probs, mask):
    random_first = lopti(eta=0.5, order="random").kept(probs, mask, 0, KEYS[:3])
    assert torch.equal(random_first.sum(1), lopti(eta=0.5).select(probs, mask, 0).sum(1))


def test_the_random_control_is_a_function_of_row_and_seed_and_of_no_last_bit():
    probs, mask = torch.rand(8, 32, generator=torch.Generator().manual_seed(0)), torch.ones(8, 32, dtype=torch.long)

    def first_pass(keys, seed, probs=probs):
        return lopti(eta=0.5, order="random", seed=seed).select(probs, mask, 0, keys)

    assert torch.equal(first_pass(KEYS[:8], seed=0), first_pass(KEYS[:8], 0, probs.nextafter(torch.zeros(()))))
    assert not torch.equal(first_pass(KEYS[:8], seed=0), first_pass(KEYS[:8], seed=1))
    assert not torch.equal(first_pass(KEYS[:8], seed=0), first_pass(KEYS[8:16], seed=0))
    twins = lopti(eta=0.5, order="random").select(probs[[0, 0]], mask[:2], 0, KEYS[:2])
    assert not torch.equal(twins[0], twins[1])  # equal responses are two rows

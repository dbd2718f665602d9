"""IBPO's estimator: golden numbers with their arithmetic, its order, its traps, and a bandit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.advantages.ibpo import ibpo
from evenkeel.trainer.algorithms.contract import traits_of

NAN = float("nan")


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)


def advantages(correct: Tensor, repair: Tensor, *, edited: Tensor | None = None, **options: float) -> Tensor:
    """Of rewards 1 and 0, everything edited unless told otherwise."""
    everything = torch.ones(len(correct), 2) if edited is None else edited
    return ibpo(correct, len(correct), correct, repair, everything, **options)


def test_golden_numbers_of_one_right_one_repairable_and_two_hopeless_answers():
    # R' = (1, .6, 0, 0): mean .4, squares .36 + .04 + .16 + .16 = .72, std √(.72/3) = .489898, + ε = .489998
    shaped = advantages(column(1, 0, 0, 0), column(0, 1, 0, 0), cap_failed=False)
    expected = column(0.6 / 0.489998, 0.2 / 0.489998, -0.4 / 0.489998, -0.4 / 0.489998)
    torch.testing.assert_close(shaped, expected[:, None].expand(4, 2), rtol=0, atol=1e-6)
    assert shaped[1, 0] == pytest.approx(0.41, abs=0.005)  # the sign trap: a wrong answer pushed up
    capped = advantages(column(1, 0, 0, 0), column(0, 1, 0, 0))
    assert capped[1].tolist() == [0, 0]
    assert torch.equal(capped[[0, 2, 3]], shaped[[0, 2, 3]])


def test_an_all_wrong_group_is_scored_by_the_shaped_reward():
    # R' = (0, .6, 0, 0): mean .15, squares 3·.0225 + .2025 = .27, std √(.27/3) = .3, so −.15/.3001 and .45/.3001
    varied = advantages(column(0, 0, 0, 0), column(0, 1, 0, 0), cap_failed=False)
    torch.testing.assert_close(varied[:, 0], column(-0.49983, 1.49950, -0.49983, -0.49983), rtol=0, atol=1e-5)
    for phi in (0.0, 0.3, 1.0):
        assert not advantages(column(0, 0, 0, 0), torch.full((4,), phi)).any()
    assert traits_of(ibpo).trains_dead_groups


rows = st.lists(st.tuples(st.sampled_from([0.0, 1.0, NAN]), st.floats(0, 1, width=32)), min_size=4, max_size=4)


@given(groups=st.lists(rows, min_size=1, max_size=4), lam=st.floats(0, 0.99), edited=st.booleans())
def test_without_repair_or_without_lambda_it_is_grpo_bit_for_bit(groups, lam: float, edited: bool):
    correct = torch.tensor([right for group in groups for right, _ in group])
    repair = torch.tensor([phi for group in groups for _, phi in group])
    edits = torch.full((len(correct), 3), float(edited))
    expected = grpo(correct, 4)[:, None].expand(-1, 3)
    for phi, weight in ((torch.zeros_like(repair), lam), (repair, 0.0)):
        shaped = ibpo(correct, 4, correct, phi, edits, lam=weight)
        assert torch.equal(shaped.isnan(), expected.isnan())
        assert torch.equal(shaped.nan_to_num(), expected.nan_to_num())


@given(group=rows, lam=st.floats(0.01, 0.99), cap=st.booleans())
def test_every_right_answer_stays_above_every_repairable_and_these_above_every_hopeless_one(group, lam, cap: bool):
    correct = torch.tensor([right for right, _ in group])
    repair = torch.tensor([phi for _, phi in group])
    shaped = advantages(correct, repair, lam=lam, cap_failed=cap)[:, 0]
    right, wrong = shaped[correct == 1], shaped[correct == 0]
    assert torch.equal(shaped.isnan(), correct.isnan())
    if len(right) and len(wrong):
        assert right.min() > wrong.max()
    by_repair = wrong[repair[correct == 0].argsort()]
    assert (by_repair.diff() >= -1e-6).all()
    if cap:
        assert not (shaped[(correct == 0) & (repair > 0)] > 0).any()


def test_what_nobody_scored_leaves_finite_advantages():
    shaped = ibpo(column(1, 0, 0, NAN), 4, column(1, 0, NAN, NAN), column(0, NAN, 1, 1), torch.ones(4, 2))
    assert shaped.isnan().any(1).tolist() == [False, False, False, True]
    without = grpo(column(1, 0, 0, NAN), 4)  # an unscored repair, and a repair of an unscored answer, count as none
    assert torch.equal(shaped[:3, 0], without[:3])


def test_a_repaired_answer_is_credited_on_its_edited_tokens_and_all_others_everywhere():
    edited = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    shaped = advantages(column(1, 0, 0), column(0, 0.5, 0), edited=edited)
    assert (shaped[[0, 2]] != 0).all()
    assert (shaped[1] != 0).tolist() == [False, True]

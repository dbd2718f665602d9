"""KTAE's statistics against scipy's; the numbers of the authors' class are in golden.json."""

import math

import pytest
import scipy.stats
import torch

from evenkeel.trainer.algorithms.advantages import key_tokens
from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.advantages.key_tokens import _fisher_p_value, _token_values, ktae


@pytest.mark.parametrize("num_right", [1, 3, 4])
@pytest.mark.parametrize("num_wrong", [1, 4])
def test_fishers_exact_test_is_scipys(num_right, num_wrong):
    for in_right in range(num_right + 1):
        for in_wrong in range(num_wrong + 1):
            table = [[in_right, in_wrong], [num_right - in_right, num_wrong - in_wrong]]
            ours = _fisher_p_value(
                torch.tensor([float(in_right)], dtype=torch.float64),
                torch.tensor([float(in_right + in_wrong)], dtype=torch.float64),
                torch.tensor(float(num_right), dtype=torch.float64),
                torch.tensor(float(num_right + num_wrong), dtype=torch.float64),
            )
            assert math.isclose(ours.item(), scipy.stats.fisher_exact(table).pvalue, rel_tol=1e-9)


def test_by_hand():
    # Token 7 in both right answers and in one of two wrong ones; 8 in the other wrong one. Two tokens a response.
    rewards = torch.tensor([1.0, 1.0, 0.0, 0.0])
    ids = torch.tensor([[7, 9], [7, 9], [7, 9], [8, 9]])
    result = ktae(rewards, 4, ids, torch.ones_like(ids)) - grpo(rewards, 4)[:, None]
    # a, b = 2, 1 of 2, 2: Fisher p = 1, so F = 0. IG: 1 − (3/4)·H(2/3) − (1/4)·0, H(2/3) = .9182958 bits.
    gain = 1 - 0.75 * 0.9182958340544896
    angle = math.asin(1.0) - math.asin(math.sqrt(0.5))
    # Shares 2/4 and 1/4, l = 1: f = 3x/(x + 2) = .6 and 1/3.
    odds = 0.6 / (1 / 3 + 1e-5) - (1 / 3) / (0.6 + 1e-5)
    value = 2 / (1 + math.exp(-gain / 2 * (angle + odds))) - 1
    torch.testing.assert_close(result[:3, 0], torch.full((3,), value), rtol=1e-5, atol=1e-6)
    assert (result[:, 1].abs() < 1e-6).all()  # token 9 is everywhere
    assert result[3, 0] < -0.99  # token 8 is in wrong answers alone


def test_masked_tokens_and_the_end_token_have_no_value():
    rewards = torch.tensor([1.0, 0.0])
    ids, mask = torch.tensor([[5, 6, 2], [7, 5, 2]]), torch.tensor([[1, 0, 1], [1, 1, 0]])
    result = ktae(rewards, 2, ids, mask, end_token_id=2) - grpo(rewards, 2)[:, None]
    assert (result[mask == 0] == 0).all()
    assert (result[ids == 2] == 0).all()
    assert result[1, 0] < -0.99
    assert abs(result[0, 0]) < 0.5  # 5 is in both


def test_without_a_right_answer_it_is_grpo():
    rewards = torch.tensor([0.0, -1.0])
    ids = torch.tensor([[5], [6]])
    assert torch.equal(ktae(rewards, 2, ids, torch.ones_like(ids)), grpo(rewards, 2)[:, None])


@pytest.mark.slow
@pytest.mark.parametrize(("group_size", "most"), [(8, 0.59), (16, 0.79)])
def test_what_the_rounding_of_equally_likely_tables_decides(group_size, most, monkeypatch):
    """v with ties recognised against v with probabilities compared bit by bit, as the authors compare them."""
    generator, differences = torch.Generator().manual_seed(0), []
    while len(differences) < 300:
        lengths = torch.randint(1, 21, (group_size,), generator=generator)
        ids = torch.randint(1, 31, (group_size, 20), generator=generator)
        counted = torch.arange(20) < lengths[:, None]
        right = torch.rand(group_size, generator=generator) < 0.5
        if right.all() or not right.any():
            continue
        recognised = _token_values(ids, counted, right)
        with monkeypatch.context() as patch:
            patch.setattr(key_tokens, "SAME_PROBABILITY", 1.0)
            differences.append((recognised - _token_values(ids, counted, right))[counted].abs())
    found = torch.cat(differences)
    print(f"up to {found.max():.2f}, mean {found.mean():.3f}, above .001: {(found > 1e-3).double().mean():.2f}")  # noqa: T201 its docstring quotes it
    assert found.max() == pytest.approx(most, abs=0.02)

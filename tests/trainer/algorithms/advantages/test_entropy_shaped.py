"""Entropy as credit, by hand; a third party's GTPO is in golden.json."""

import pytest
import torch
from hypothesis import given

from evenkeel.trainer.algorithms.advantages.entropy_shaped import entropy_shaped, gtpo
from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from tests.trainer.algorithms.advantages.rollouts import NAN, estimate, property_test, rollouts


def test_the_bonus_is_capped_at_half_of_the_advantage():
    # A = ±1/√2·… : with rewards 1e4 and 0, std 1e4/√2, A = ±.7071. α H = .04, .4; cap .35355.
    result = entropy_shaped(torch.tensor([1e4, 0.0]), 2, torch.tensor([[0.1, 1.0], [0.1, 1.0]]))
    half = 0.5**0.5
    expected = torch.tensor([[half + 0.04, 1.5 * half], [-half + 0.04, -half / 2]])
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)


@property_test
@given(rollouts())
def test_no_advantage_changes_its_sign(rollout):
    base = grpo(rollout["rewards"], rollout["group_size"])[:, None].nan_to_num()
    shaped = estimate("entropy_shaped", rollout).nan_to_num()
    assert ((shaped.sign() == base.sign()) & (shaped >= base)).all()


def test_a_cap_that_could_turn_the_sign_is_refused():
    with pytest.raises(ValueError, match="kappa = 1, but"):
        entropy_shaped(torch.zeros(2), 2, torch.zeros(2, 1), kappa=1.0)


def test_gtpo_by_hand():
    # Right rows 0 and 1: shares 2·1/4 and 2·3/4, r̃ = 1.05 and 1.15: mean 1.1, std .05 ⇒ ∓1. The wrong row alone has
    # share 1 everywhere: r̃ constant ⇒ 0.
    rewards = torch.tensor([1.0, 1.0, 0.0, NAN], dtype=torch.float64)
    entropies = torch.tensor([[1.0], [3.0], [2.0], [5.0]], dtype=torch.float64)
    result = gtpo(rewards, 4, entropies, torch.ones(4, 1, dtype=torch.long))
    expected = torch.tensor([[-1.0], [1.0], [0.0], [NAN]], dtype=torch.float64)
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-7, equal_nan=True)


def test_a_single_right_answer_is_not_trained_by_rounding():
    # Alone in O⁺, its r̃ is constant: advantage 0. In single precision 1e-7 of rounding over √1e-8 would be 1e-3.
    generator = torch.Generator().manual_seed(0)
    entropies, lengths = 2 * torch.rand((40, 7), generator=generator), torch.randint(1, 8, (40,), generator=generator)
    mask = (torch.arange(7) < lengths[:, None]).long()
    rewards = (torch.arange(40) % 4 == 0).float()
    assert gtpo(rewards, 4, entropies, mask)[::4].abs().max() < 1e-8


def test_gtpo_blames_wrong_answers_where_they_were_sure():
    rewards = torch.tensor([1.0, 0.0, 0.0])
    entropies = torch.tensor([[1.0], [0.1], [2.0]])
    result = gtpo(rewards, 3, entropies, torch.ones(3, 1, dtype=torch.long))
    assert result[1] < 0 < result[2]


@property_test
@given(rollouts())
def test_gtpo_counts_only_tokens_of_the_mask(rollout):
    other = rollout | {"entropies": rollout["entropies"].where(rollout["mask"].bool(), 7.0)}
    result = estimate("gtpo", rollout)
    assert torch.equal(result.nan_to_num(), estimate("gtpo", other).nan_to_num())
    assert (result.nan_to_num()[rollout["mask"] == 0] == 0).all()

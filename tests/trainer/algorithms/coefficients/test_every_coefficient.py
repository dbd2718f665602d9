"""What holds for every coefficient, and each one's values by hand."""

import inspect
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenkeel.trainer.algorithms.coefficients.asymmetric import aspo
from evenkeel.trainer.algorithms.coefficients.divergence import dppo
from evenkeel.trainer.algorithms.coefficients.drift_fixing import dfpo_min_replace, dfpo_orthogonal
from evenkeel.trainer.algorithms.coefficients.future_kl import fipo
from evenkeel.trainer.algorithms.coefficients.importance_ratios import (
    importance_ratio,
    symmetric_clip,
    trajectory_ratio,
)
from evenkeel.trainer.algorithms.coefficients.rewards_as_labels import real
from evenkeel.trainer.algorithms.coefficients.soft_gates import sapo, vespo
from evenkeel.trainer.algorithms.coefficients.tapered import topr

EVERY = [importance_ratio, symmetric_clip, trajectory_ratio, topr, aspo, dppo, fipo, real]
EVERY += [sapo, vespo, dfpo_min_replace, dfpo_orthogonal]
fast = settings(max_examples=20, deadline=None, derandomize=True)
log_probabilities = npst.arrays("float32", (4, 3), elements=st.floats(-60, 0, width=32)).map(torch.from_numpy)
rewards = npst.arrays("float32", 4, elements=st.sampled_from([-1.0, 0.0, 1.0])).map(torch.from_numpy)
masks = npst.arrays("int64", (4, 3), elements=st.integers(0, 1)).map(torch.from_numpy)
every_coefficient = pytest.mark.parametrize("coefficient", EVERY, ids=lambda coefficient: coefficient.__name__)


def call(coefficient, logps, old_logps, advantages, mask=None, **options):
    """With the signals that it names; ``advantages`` (B,) of whole responses, rows in groups of two."""
    rows = len(advantages)
    signals = {
        "logps": logps,
        "old_logps": old_logps,
        "log_ratio": logps - old_logps,
        "advantages": advantages[:, None].expand(logps.shape),
        "mask": torch.ones_like(logps, dtype=torch.long) if mask is None else mask,
        "groups": torch.arange(rows) // 2,
        "scored": torch.ones(rows, dtype=torch.bool),
    }
    return coefficient(
        **{name: signals[name] for name in inspect.signature(coefficient).parameters if name in signals}, **options
    )


def of_ratio(coefficient, ratio, advantage, **options):
    """The coefficient of one token with this importance ratio, π_old = 0.01."""
    old = torch.tensor([[math.log(0.01)]])
    return call(coefficient, old + math.log(ratio), old, torch.tensor([advantage]), **options).item()


@every_coefficient
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 2.0])
def test_on_policy_every_coefficient_is_one(coefficient, advantage):
    logps = -torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    result = call(coefficient, logps, logps, torch.tensor([advantage, -advantage, 0.0, 0.0]))
    torch.testing.assert_close(result.expand(4, 3), torch.ones(4, 3))


@fast
@given(log_probabilities, log_probabilities, rewards, masks)
def test_coefficients_are_finite_whatever_the_policy_became(logps, old_logps, advantages, mask):
    for coefficient in EVERY:
        result = call(coefficient, logps, old_logps, advantages, mask)
        assert result.shape in ((4, 3), (4, 1)), coefficient
        assert result.isfinite().all(), coefficient
        assert not result.requires_grad
        assert coefficient is dfpo_orthogonal or (result >= 0).all(), coefficient


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_the_capped_ratio_does_not_look_at_the_advantage(advantage):
    assert of_ratio(importance_ratio, 8.0, advantage) == pytest.approx(8.0)
    assert of_ratio(symmetric_clip, 8.0, advantage, cap=3.0) == pytest.approx(3.0)
    assert of_ratio(symmetric_clip, 0.1, advantage, cap=3.0) == pytest.approx(0.1)


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
    old = torch.full((2, 300), -3.0)
    torch.testing.assert_close(
        call(fipo, old + log_ratio, old, torch.ones(2), high_only=False), expected, rtol=1e-4, atol=1e-5
    )

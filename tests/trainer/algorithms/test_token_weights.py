import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evenkeel.trainer.algorithms.token_weights import adv_reweight, low_probability_reweight, uniform

property_test = settings(max_examples=25, deadline=None, derandomize=True)
unit_interval = st.floats(0, 1, width=32)
token_probs = npst.arrays("float32", (3, 4), elements=unit_interval).map(torch.from_numpy)
token_masks = npst.arrays("int64", (3, 4), elements=st.integers(0, 1)).map(torch.from_numpy)


def weights(probs, mask=None, **options):
    mask = torch.ones_like(probs, dtype=torch.long) if mask is None else mask
    return adv_reweight(probs, torch.zeros_like(probs), mask, **options)


def test_uniform_weighs_every_token_one():
    probs = torch.rand(2, 3)
    assert torch.equal(uniform(probs, probs, torch.ones(2, 3, dtype=torch.long)), torch.ones(2, 3))


def test_adv_reweight_by_hand():
    # α = 0.2: 0.2·0 + 0.8, 0.2·0.5 + 0.8, 0.2·1 + 0.8
    torch.testing.assert_close(weights(torch.tensor([[0.0, 0.5, 1.0]]), alpha=0.2), torch.tensor([[0.8, 0.9, 1.0]]))


def test_the_default_alpha_is_the_papers():
    probs = torch.rand(2, 3)
    assert torch.equal(weights(probs), weights(probs, alpha=0.2))


@property_test
@given(token_probs)
def test_alpha_zero_weighs_every_token_exactly_one(probs):
    assert torch.equal(weights(probs, alpha=0.0), torch.ones(3, 4))


@property_test
@given(token_probs, unit_interval)
def test_weights_lie_between_one_minus_alpha_and_one_and_grow_with_the_probability(probs, alpha):
    result = weights(probs, alpha=alpha)
    assert (result >= 1 - alpha - 1e-6).all()
    assert (result <= 1 + 1e-6).all()
    assert (result.flatten()[probs.flatten().argsort()].diff() >= 0).all()


@property_test
@given(token_probs, token_masks, unit_interval)
def test_the_sign_of_the_advantage_does_not_matter(probs, mask, alpha):
    advantages = torch.linspace(-1, 1, 12).view(3, 4)
    assert torch.equal(adv_reweight(probs, advantages, mask, alpha=alpha), weights(probs, mask, alpha=alpha))


@property_test
@given(token_probs, token_masks, st.floats(0, 0.99))
def test_normalized_weights_average_one_over_the_tokens_that_count(probs, mask, alpha):
    mask[0, 0] = 1
    plain, normalized = weights(probs, alpha=alpha), weights(probs, mask, alpha=alpha, normalize="mean")
    torch.testing.assert_close(normalized[mask.bool()].mean(), torch.tensor(1.0))
    torch.testing.assert_close(normalized * plain[mask.bool()].mean(), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_normalized_weights_stay_as_they_are_where_nothing_counts(dtype):
    probs = torch.rand(2, 3).to(dtype)
    nothing = torch.zeros(2, 3, dtype=torch.long)
    assert torch.equal(weights(probs, nothing, normalize="mean"), weights(probs))
    never = torch.zeros(2, 3, dtype=dtype)
    assert torch.equal(weights(never, alpha=1.0, normalize="mean"), never)


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_an_alpha_that_could_make_weights_negative_is_refused(alpha):
    with pytest.raises(ValueError, match=rf"alpha = {alpha}, but .* Write 0 ≤ alpha ≤ 1"):
        weights(torch.rand(2, 3), alpha=alpha)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_ends_of_the_range_of_alpha_are_allowed(alpha):
    probs = torch.rand(2, 3)
    assert torch.equal(weights(probs, alpha=alpha), torch.ones(2, 3) if alpha == 0.0 else probs)


def test_the_opposite_of_ar_by_hand():
    # α = 0.2: 1 + 0.2·1, 1 + 0.2·0.5, 1 + 0; their mean is 1.1
    probs, mask = torch.tensor([[0.0, 0.5, 1.0]]), torch.ones(1, 3, dtype=torch.long)
    expected = torch.tensor([[1.2, 1.1, 1.0]])
    torch.testing.assert_close(low_probability_reweight(probs, probs, mask), expected)
    normalized = low_probability_reweight(probs, -probs, mask, normalize="mean")
    torch.testing.assert_close(normalized, expected / 1.1)
    assert torch.equal(low_probability_reweight(probs, probs, mask, alpha=0.0), torch.ones(1, 3))
    with pytest.raises(ValueError, match="Write alpha ≥ 0"):
        low_probability_reweight(probs, probs, mask, alpha=-0.1)


@property_test
@given(token_probs, unit_interval)
def test_ar_and_its_opposite_add_up_to_a_constant(probs, alpha):
    mask = torch.ones_like(probs, dtype=torch.long)
    other = low_probability_reweight(probs, probs, mask, alpha=alpha)
    torch.testing.assert_close(other + weights(probs, alpha=alpha), torch.full_like(probs, 2.0))


@property_test
@given(ratio=st.floats(0.1, 3), advantage=st.floats(-3, 3), weight=st.floats(0, 2))
def test_a_weight_that_is_not_negative_commutes_with_the_clip(ratio, advantage, weight):
    ratio, advantage = torch.tensor(ratio, dtype=torch.float64), torch.tensor(advantage, dtype=torch.float64)
    clipped = ratio.clamp(0.8, 1.24)
    of_weighted_advantage = torch.min(ratio * (weight * advantage), clipped * (weight * advantage))
    torch.testing.assert_close(of_weighted_advantage, weight * torch.min(ratio * advantage, clipped * advantage))


def test_a_negative_weight_does_not_commute_with_the_clip():
    # ρ = 2, A = 1, w = −1: min(2·−1, 1.2·−1) = −2 but −1·min(2, 1.2) = −1.2.
    ratio, clipped, weight = 2.0, 1.2, -1.0
    assert min(ratio * weight, clipped * weight) != weight * min(ratio, clipped)


@property_test
@given(logits=npst.arrays("float64", st.integers(2, 9), elements=st.floats(-6, 6)), chosen=st.integers(0, 8))
def test_the_logit_gradient_of_a_token_is_bounded_by_its_improbability(logits, chosen):
    """``√(N/(N−1))·(1−π) ≤ ‖∂(−log π)/∂logits‖₂ ≤ √2·(1−π)`` (arXiv 2505.12929)."""
    logits = torch.from_numpy(logits).requires_grad_()
    size, chosen = len(logits), chosen % len(logits)
    log_prob = logits.log_softmax(0)[chosen]
    (gradient,) = torch.autograd.grad(-log_prob, logits)
    improbability = 1 - log_prob.exp().item()
    norm = gradient.norm().item()
    assert (size / (size - 1)) ** 0.5 * improbability <= norm * (1 + 1e-9)
    assert norm <= 2**0.5 * improbability * (1 + 1e-9)

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
from evenkeel.trainer.algorithms.contract import COEFFICIENT, SIGNALS

NON_NEGATIVE = [importance_ratio, symmetric_clip, trajectory_ratio, topr, aspo, dppo, fipo, real]
NON_NEGATIVE += [sapo, vespo, dfpo_min_replace]
EVERY = [*NON_NEGATIVE, dfpo_orthogonal]
fast = settings(max_examples=20, deadline=None, derandomize=True)
thorough = settings(max_examples=200, deadline=None)
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
        "judged": torch.ones(rows, dtype=torch.bool),
    }
    return coefficient(
        **{name: signals[name] for name in inspect.signature(coefficient).parameters if name in signals}, **options
    )


def of_ratio(coefficient, ratio, advantage, **options):
    """The coefficient of one token with this importance ratio, π_old = 0.01."""
    old = torch.tensor([[math.log(0.01)]])
    return call(coefficient, old + math.log(ratio), old, torch.tensor([advantage]), **options).item()


@every_coefficient
def test_it_names_signals_and_optional_options_only(coefficient):
    for name, parameter in inspect.signature(coefficient).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert parameter.default is not parameter.empty
        else:
            assert name in SIGNALS[COEFFICIENT]


@every_coefficient
def test_its_docstring_says_where_it_comes_from_and_what_was_verified(coefficient):
    lines = [line.strip() for line in coefficient.__doc__.splitlines()]
    assert lines[0].endswith(".")
    assert any(line.startswith("Source: ") for line in lines)
    assert any(line.startswith("Evidence: ") for line in lines)


@every_coefficient
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 2.0])
def test_on_policy_every_coefficient_is_one(coefficient, advantage):
    logps = -torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    result = call(coefficient, logps, logps, torch.tensor([advantage, -advantage, 0.0, 0.0]))
    torch.testing.assert_close(result.expand(4, 3), torch.ones(4, 3))


def finite_non_negative_and_detached(logps, old_logps, advantages, mask):
    for coefficient in EVERY:
        result = call(coefficient, logps, old_logps, advantages, mask)
        assert result.shape in ((4, 3), (4, 1)), coefficient
        assert result.isfinite().all(), coefficient
        assert not result.requires_grad
        assert coefficient is dfpo_orthogonal or (result >= 0).all(), coefficient


@fast
@given(log_probabilities, log_probabilities, rewards, masks)
def test_coefficients_are_finite_whatever_the_policy_became(logps, old_logps, advantages, mask):
    finite_non_negative_and_detached(logps, old_logps, advantages, mask)


@pytest.mark.slow
@thorough
@given(log_probabilities, log_probabilities, rewards, masks)
def test_coefficients_are_finite_on_random_inputs(logps, old_logps, advantages, mask):
    finite_non_negative_and_detached(logps, old_logps, advantages, mask)


@fast
@given(log_probabilities, log_probabilities, rewards, masks, st.sampled_from([[1, 0, 3, 2], [2, 3, 0, 1]]))
def test_rows_do_not_see_more_of_the_batch_than_their_group(logps, old_logps, advantages, mask, order):
    for coefficient in EVERY:
        plain = call(coefficient, logps, old_logps, advantages, mask)
        permuted = call(coefficient, logps[order], old_logps[order], advantages[order], mask[order])
        torch.testing.assert_close(permuted, plain[order], rtol=1e-5, atol=1e-6)


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


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [(0.5, 1, 2.0), (0.1, 1, 3.0), (1.19, 1, 1 / 1.19), (1.21, 1, 0.0), (4, -1, 3.0), (2, -1, 2.0), (0.79, -1, 0.0)],
)
def test_aspo_flips_the_ratio_of_good_tokens(ratio, advantage, expected):
    assert of_ratio(aspo, float(ratio), float(advantage)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("old", "new", "advantage", "kept"),
    [(0.5, 0.69, 1, True), (0.5, 0.71, 1, False), (0.5, 0.71, -1, True), (0.5, 0.29, -1, False), (0.01, 0.04, 1, True)],
)
def test_dppo_drops_a_token_by_its_absolute_change_in_the_direction_of_the_advantage(old, new, advantage, kept):
    result = call(dppo, torch.tensor([[new]]).log(), torch.tensor([[old]]).log(), torch.tensor([float(advantage)]))
    assert result.item() == pytest.approx(min(new / old, 5.0) if kept else 0.0)


def test_dppo_by_kl_is_the_divergence_of_two_coins():
    # old .5, new .65: .5 ln(.5/.65) + .5 ln(.5/.35) = .5 (−.26236 + .35667) = .04716 ≤ .05; new .66: .0530 > .05
    old, good = torch.tensor([[0.5]]).log(), torch.tensor([1.0])
    options = {"divergence": "kl", "delta_low": 0.05, "delta_high": 0.05}
    assert call(dppo, torch.tensor([[0.65]]).log(), old, good, **options).item() == pytest.approx(1.3)
    assert call(dppo, torch.tensor([[0.66]]).log(), old, good, **options).item() == 0.0


def test_fipo_weighs_a_token_by_what_becomes_of_those_behind_it():
    # half-life 1: γ = 1/2; log ρ = (0, .1, .2): F = (.1/2 + .2/4, .1 + .2/2, .2) = (.1, .2, .2)
    log_ratio, good = torch.tensor([[0.0, 0.1, 0.2]]), torch.tensor([1.0])
    found = call(fipo, log_ratio - 3, torch.full((1, 3), -3.0), good, half_life=1.0, influence=0.15)
    torch.testing.assert_close(found, torch.tensor([[math.exp(0.1), 1.15 * math.exp(0.1), 1.15 * math.exp(0.2)]]))
    # what is masked is neither heard nor counted, a ratio above 1.28 of a good token is clipped
    log_ratio, mask = torch.tensor([[0.0, 0.5, 0.3]]), torch.tensor([[1, 0, 1]])
    found = call(fipo, log_ratio - 3, torch.full((1, 3), -3.0), good, mask, half_life=1.0)
    torch.testing.assert_close(found * mask, torch.tensor([[math.exp(0.15), 0.0, 0.0]]))


def test_fipo_discounts_over_more_tokens_than_a_block_holds():
    log_ratio = 0.02 * torch.randn(2, 300, generator=torch.Generator().manual_seed(0))
    future = [sum(0.5 ** ((k - t) / 32) * log_ratio[:, k] for k in range(t, 300)) for t in range(300)]
    expected = torch.stack(future, 1).exp().clamp(0.8, 1.2) * log_ratio.exp()
    old = torch.full((2, 300), -3.0)
    torch.testing.assert_close(
        call(fipo, old + log_ratio, old, torch.ones(2), high_only=False), expected, rtol=1e-4, atol=1e-5
    )


def test_real_by_hand():
    # two right answers of which the policy has raised one, s = (.5, 0), τ = .5: 3 e^{−1} / (1 + e^{−1} + 1), 3 / (…)
    logs = torch.tensor([[0.5, 0.5], [0.0, 0.0]])
    found = call(real, logs - 3, torch.full((2, 2), -3.0), torch.tensor([2.0, 2.0]))
    below = 2 + math.exp(-1)
    torch.testing.assert_close(found, torch.tensor([[3 * math.exp(-1) / below], [3 / below]]))
    # a wrong one that was raised weighs more: 2 e / (1 + e), alone of its kind
    found = call(real, logs - 3, torch.full((2, 2), -3.0), torch.tensor([-1.0, 1.0]))
    torch.testing.assert_close(found, torch.tensor([[2 * math.e / (1 + math.e)], [1.0]]))


def test_sapo_is_the_slope_of_its_gate():
    log_ratio = torch.linspace(-2, 2, 9, dtype=torch.float64).view(1, 9)
    for sign, temperature in ((1.0, 1.0), (-1.0, 1.05)):
        logps = log_ratio.clone().requires_grad_(True)
        gate = torch.sigmoid(temperature * (logps.exp() - 1)) * 4 / temperature
        (slope,) = torch.autograd.grad(gate.sum(), logps)
        torch.testing.assert_close(sapo(log_ratio, torch.full((1, 9), sign)), slope)


def test_vespo_peaks_where_the_ratio_is_k_over_lambda():
    # k/λ = 2/3: c = e³ (2/3)² e^{−2} = e·4/9 = 1.2081
    assert of_ratio(vespo, 2 / 3, 1.0) == pytest.approx(math.e * 4 / 9, rel=1e-5)
    assert of_ratio(vespo, 0.6, 1.0) < of_ratio(vespo, 2 / 3, 1.0) > of_ratio(vespo, 0.75, 1.0)
    assert of_ratio(vespo, 1.5, -1.0) == pytest.approx(math.exp(2) * 1.5**3 * math.exp(-3), rel=1e-5)


@pytest.mark.parametrize(
    ("coefficient", "options", "advice"),
    [
        (symmetric_clip, {"cap": 0.5}, "Write cap ≥ 1"),
        (aspo, {"epsilon_low": 1.0}, "Write 0 < epsilon_low < 1"),
        (aspo, {"epsilon_high": 0.0}, "epsilon_high > 0"),
        (aspo, {"cap": 1.0}, "Write cap > 1"),
        (dppo, {"delta_low": 0.0}, "Write positive deltas"),
        (dppo, {"cap": 0.9}, "cap ≥ 1"),
        (fipo, {"influence": 1.5}, "Write half_life > 0 and 0 ≤ influence ≤ 1"),
        (fipo, {"dual_clip": 1.0}, "dual_clip > 1"),
        (real, {"tau": 0.0}, "Write tau > 0"),
        (sapo, {"temperature_pos": 0.0}, "Write 1.0 and 1.05"),
        (vespo, {"lambda_neg": 0.0}, "Published: k_pos 2"),
    ],
)
def test_options_that_cannot_work_are_refused_with_what_to_write(coefficient, options, advice):
    with pytest.raises(ValueError, match=advice):
        of_ratio(coefficient, 1.0, 1.0, **options)

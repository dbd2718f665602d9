"""What every estimator of the package promises, whichever files it holds."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.algorithms.advantages.rollouts import (
    ESTIMATORS,
    LENGTH,
    NAN,
    WITH_BASELINE,
    estimate,
    property_test,
    rollout,
    rollouts,
    rows_of,
    thorough_property_test,
    token_rows,
)
from trainer.algorithms.contract import ADVANTAGE
from trainer.algorithms.registry import find_strategy
from trainer.algorithms.trial import tried

every_estimator = pytest.mark.parametrize("name", sorted(ESTIMATORS))


def assert_same(result, expected, atol=1e-5):
    torch.testing.assert_close(result, expected, equal_nan=True, rtol=1e-4, atol=atol)


def exactly_the_unjudged_are_nan(name, drawn):
    result = token_rows(estimate(name, drawn))
    unjudged = drawn["rewards"].isnan()
    assert result.shape[0] == len(unjudged)
    assert torch.equal(result.isnan().any(1), unjudged)
    assert torch.equal(result.isnan().all(1), unjudged)
    assert not result.isinf().any()


def order_of_rows_does_not_matter(name, drawn, random):
    group_size = drawn["group_size"]
    groups = [
        random.sample(range(start, start + group_size), group_size)
        for start in range(0, len(drawn["rewards"]), group_size)
    ]
    random.shuffle(groups)
    order = [row for group in groups for row in group]
    assert_same(estimate(name, rows_of(drawn, order)), estimate(name, drawn)[order])


@every_estimator
@property_test
@given(rollouts())
def test_exactly_the_unjudged_responses_get_nan(name, drawn):
    exactly_the_unjudged_are_nan(name, drawn)


@every_estimator
@property_test
@given(rollouts(), st.randoms(use_true_random=False))
def test_the_order_of_groups_and_of_rows_inside_them_does_not_matter(name, drawn, random):
    order_of_rows_does_not_matter(name, drawn, random)


@pytest.mark.slow
@every_estimator
@thorough_property_test
@given(rollouts(), st.randoms(use_true_random=False))
def test_both_on_two_hundred_random_rollouts(name, drawn, random):
    exactly_the_unjudged_are_nan(name, drawn)
    order_of_rows_does_not_matter(name, drawn, random)


@every_estimator
@property_test
@given(rollouts())
def test_the_same_rollout_gives_the_same_bits_and_is_left_as_it_was(name, drawn):
    before = {key: value.clone() for key, value in drawn.items() if isinstance(value, torch.Tensor)}
    first, second = estimate(name, drawn), estimate(name, drawn)
    assert torch.equal(first.nan_to_num(), second.nan_to_num())
    assert all(torch.equal(drawn[key].nan_to_num(), value.nan_to_num()) for key, value in before.items())


@pytest.mark.parametrize("name", sorted(WITH_BASELINE))
@pytest.mark.parametrize("value", [0.2, 0.7, 0.0, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_equal_rewards_get_exact_zeros(name, value, dtype):
    rewards = torch.tensor([value] * 8 + [NAN, value] * 4 + [NAN] * 7 + [value] + [0.0, 1.0] + [0.0] * 6, dtype=dtype)
    lengths = torch.arange(32) % LENGTH + 1
    result = token_rows(estimate(name, rollout(rewards, 8, lengths, torch.Generator().manual_seed(0))))
    assert (result[:24][~rewards[:24].isnan()] == 0).all()
    assert (result[24:] != 0).any()
    assert result.dtype == dtype


@pytest.mark.parametrize("name", sorted(WITH_BASELINE))
def test_rewards_that_differ_by_rounding_alone_get_exact_zeros(name):
    total = torch.tensor(0.4)
    rewards = torch.stack(
        [total, torch.nextafter(total, torch.tensor(1.0))] * 4 + [torch.tensor(0.0), torch.tensor(1.0)] * 4
    )
    assert rewards[0] != rewards[1]
    result = token_rows(estimate(name, rollout(rewards, 8, torch.arange(16) % 5 + 1, torch.Generator().manual_seed(0))))
    assert (result[:8] == 0).all()


@every_estimator
def test_a_group_without_any_verdict_is_nan_and_the_batch_goes_on(name):
    rewards = torch.tensor([NAN] * 6 + [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    drawn = rollout(rewards, 6, torch.arange(12) % 5 + 1, torch.Generator().manual_seed(0))
    result = token_rows(estimate(name, drawn))
    assert result[:6].isnan().all()
    assert result[6:].isfinite().all()
    assert (result[6:] != 0).any()


@pytest.mark.parametrize("name", ["opo", "reinforce_pp_token", "reinforce_pp_original", "vl_norm", "lambda_grpo"])
def test_lengths_are_counted_in_full_beside_bfloat16_rewards(name):
    # bfloat16 knows 1024 and 1032, not the numbers between: lengths of 1025 to 1028 would be one.
    lengths = torch.tensor([1025, 1026, 1027, 1028])
    rewards = torch.tensor([1.0, 0.0, 0.0, 0.5])
    drawn = rollout(rewards, 4, torch.tensor([5, 5, 5, 5]), torch.Generator().manual_seed(0)) | {"lengths": lengths}
    coarse = estimate(name, drawn | {"rewards": rewards.bfloat16()})
    torch.testing.assert_close(coarse, estimate(name, drawn).bfloat16(), rtol=0.01, atol=1e-3)


@every_estimator
def test_every_estimator_can_be_built_by_name_with_its_defaults(name):
    assert tried(find_strategy(ADVANTAGE, name)).name == name


@every_estimator
@pytest.mark.parametrize("marked", ["Source: ", "Evidence: "])
def test_every_estimator_names_its_source_and_what_was_verified(name, marked):
    lines = (ESTIMATORS[name].__doc__ or "").splitlines()
    assert lines[0].endswith(".")
    assert sum(line.strip().startswith(marked) for line in lines) == 1

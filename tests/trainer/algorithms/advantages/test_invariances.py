"""What a change of all rewards must not change, by estimator, and which advantages of a group sum to zero."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.groups import GROUP_STD_EPSILON
from tests.trainer.algorithms.advantages.rollouts import (
    estimate,
    property_test,
    rollouts,
    thorough_property_test,
    token_rows,
)

GROUP_STANDARDISED = ["grpo", "exchangeable", "exchangeable_prefix_tree", "exchangeable_token_class", "lambda_grpo"]
GROUP_STANDARDISED += ["vl_norm", "shared_step_grpo", "pass_at_k_max_gap", "entropy_shaped"]
BATCH_STANDARDISED = ["reinforce_pp", "reinforce_pp_token", "gdpo"]
CENTRED = ["dr_grpo", "rloo", "opo"]
SUM_TO_ZERO = ["grpo", "dr_grpo", "rloo", "reinforce_pp", "exchangeable", "gpg", "maxrl", "bnpo_beta", "gdpo"]
SUM_TO_ZERO += ["pass_at_k", "disco"]


def with_rewards(drawn, rewards):
    """The rollout with other rewards, of one function of weight 1."""
    return drawn | {
        "rewards": rewards,
        "rewards_per_function": rewards[:, None],
        "reward_weights": torch.ones(1),
    }


def shifted_and_scaled(drawn, shift, scale):
    return with_rewards(drawn, scale * (drawn["rewards"] + shift)), with_rewards(drawn, scale * drawn["rewards"])


def group_sums_vanish(name, drawn):
    """To rounding of what cancels, which for gdpo are its functions' scores: their sum may be rounding itself."""
    advantages = token_rows(estimate(name, drawn)).nan_to_num()
    cancelling = scores_of_functions(drawn) if name == "gdpo" else advantages
    for group, terms in zip(*(each.split(drawn["group_size"]) for each in (advantages, cancelling)), strict=True):
        assert group.sum(0).abs().max() <= 2e-5 * terms.abs().sum()


def scores_of_functions(drawn):
    """What gdpo adds up (N, F): each function's ``grpo``, over the std of their sums."""
    columns = drawn["rewards_per_function"].unbind(1)
    scores = torch.stack([estimate("grpo", with_rewards(drawn, column)) for column in columns], dim=1)
    sums = scores.sum(1)
    judged = sums[~sums.isnan()]
    std = judged.std() if len(judged) > 1 else 1.0
    return (scores / (std + GROUP_STD_EPSILON)).nan_to_num()


@pytest.mark.parametrize("name", [*GROUP_STANDARDISED, *BATCH_STANDARDISED, *CENTRED])
@property_test
@given(rollouts(), st.integers(-40, 40))
def test_adding_a_constant_to_all_rewards_changes_nothing(name, drawn, eighths):
    shifted, plain = shifted_and_scaled(drawn, eighths / 8, 1.0)
    torch.testing.assert_close(estimate(name, shifted), estimate(name, plain), equal_nan=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [*GROUP_STANDARDISED, *BATCH_STANDARDISED, "reinforce_pp_original"])
@property_test
@given(rollouts())
def test_standardised_advantages_do_not_scale_with_the_rewards(name, drawn):
    large = with_rewards(drawn, 2.0**20 * drawn["rewards"])  # ε no longer counts
    larger = with_rewards(drawn, 2.0**24 * drawn["rewards"])
    torch.testing.assert_close(estimate(name, large), estimate(name, larger), equal_nan=True, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [*CENTRED, "gpg", "reinforce"])
@property_test
@given(rollouts())
def test_centred_rewards_scale_with_the_rewards(name, drawn):
    large = estimate(name, with_rewards(drawn, 4 * drawn["rewards"]))
    assert torch.equal((4 * estimate(name, drawn)).nan_to_num(), large.nan_to_num())


@pytest.mark.parametrize("name", SUM_TO_ZERO)
@property_test
@given(rollouts())
def test_advantages_of_a_group_sum_to_zero(name, drawn):
    group_sums_vanish(name, drawn)


def test_scores_that_cancel_in_gdpo_leave_their_rounding():
    # What one function gives the other takes: sums of 1 and of scores like ±.7, which cancel to about 1e-8. The second
    # group is live, so that the std that divides is not of that size.
    half = torch.tensor([[0.75, 0.25], [0.25, 0.75], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    ones = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    drawn = {"rewards": ones, "group_size": 3, "rewards_per_function": half, "reward_weights": torch.ones(2)}
    assert 0 < estimate("gdpo", drawn)[:3].abs().max() < 1e-6
    assert scores_of_functions(drawn)[:3].abs().max() > 0.1
    group_sums_vanish("gdpo", drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUM_TO_ZERO)
@thorough_property_test
@given(rollouts())
def test_they_sum_to_zero_on_two_hundred_random_rollouts(name, drawn):
    group_sums_vanish(name, drawn)

"""What the tables of other people's code (`golden.json`) do not say of an estimator: its edges, and options of ours."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.advantages import (
    backward_corrected,
    disco,
    entropy_shaped,
    forward_corrected,
    gdpo,
    grpo,
    gtpo,
    gtpo_conflict,
    ktae,
    lambda_grpo,
    nsr,
    pass_at_k,
    psr,
    reinforce_pp_original,
    reinforce_pp_token,
    unlikeliness,
    vl_norm,
)
from tests.trainer.algorithms.advantages.rollouts import NAN

SEEN = torch.tensor([1.0, 0.0], dtype=torch.float64)
RATES = st.tuples(st.floats(0, 0.49), st.floats(0, 0.49))
UNEQUAL = torch.tensor([1.0, 0.0, NAN, 1.0])
TAG, END = 7, 8
ONES = torch.ones(4, 2, dtype=torch.long)


def test_right_is_where_the_reward_says_so():
    torch.testing.assert_close(psr(torch.tensor([3.0, -0.5]), right_at=3.0), torch.tensor([3.0, 0.0]))
    torch.testing.assert_close(nsr(torch.tensor([3.0, -0.5]), right_at=3.0), torch.tensor([0.0, -3.5]))


@given(RATES)
def test_the_expectation_over_a_verifiers_errors_is_the_truth(rates: tuple[float, float]):
    false_positive, false_negative = rates
    of_right, of_wrong = (torch.tensor([p, 1 - p], dtype=SEEN.dtype) for p in (1 - false_negative, false_positive))
    backward = backward_corrected(SEEN, false_positive=false_positive, false_negative=false_negative)
    assert (backward @ of_right).item() == pytest.approx(1, abs=1e-9)
    assert (backward @ of_wrong).item() == pytest.approx(0, abs=1e-9)
    forward = forward_corrected(SEEN, false_negative=false_negative)
    assert (forward @ of_right).item() == pytest.approx(0, abs=1e-9)
    assert (forward @ of_wrong).item() == pytest.approx(-(1 - false_positive - false_negative), abs=1e-9)


def total(per_function, weights):
    return (per_function * weights).nansum(1).masked_fill(per_function.isnan().all(1), NAN)


def test_groups_of_equal_sums_are_trained_where_functions_differ():
    # .75·1 + .25·1 = 1 for both responses, but the functions rate them apart and weigh unequally after normalisation.
    per_function = torch.tensor([[1.0, 1.0], [2.0, -2.0], [1.0, 1.0], [1.0, 1.0]])
    weights = torch.tensor([0.75, 0.25])
    rewards = total(per_function, weights)
    assert rewards.tolist() == [1.0, 1.0, 1.0, 1.0]
    result = gdpo(rewards, 2, per_function, weights)
    assert (result[:2] != 0).all()
    assert (result[2:] == 0).all()


def test_a_function_that_did_not_judge_a_response_has_no_say():
    per_function = torch.tensor([[1.0, NAN], [0.0, 5.0], [NAN, NAN], [0.0, 3.0]])
    weights = torch.ones(2)
    result = gdpo(total(per_function, weights), 4, per_function, weights)
    assert result.isnan().tolist() == [False, False, True, False]
    assert result[0] > 0
    assert result.nan_to_num().sum().abs() < 1e-5


def test_lambda_grpo_by_hand():
    # Scored lengths 2, 4, 6: mean 4, std 2, z = −1, 0, 1; h = 8/9, 1, 10/9; softmax of h², times 3.
    powers = [math.exp((8 / 9) ** 2), math.e, math.exp((10 / 9) ** 2)]
    weights = [3 * power / sum(powers) for power in powers]
    result = lambda_grpo(UNEQUAL, 4, torch.tensor([2, 4, 9, 6]), exponent=2.0)
    expected = grpo(UNEQUAL, 4) * torch.tensor([weights[0], weights[1], 1.0, weights[2]])
    torch.testing.assert_close(result, expected, equal_nan=True)


def test_vl_norm_leaves_responses_without_tokens_out_of_the_mean():
    result = vl_norm(torch.tensor([1.0, 0.0, 1.0]), 3, torch.tensor([4, 4, 0]))
    torch.testing.assert_close(result[:2], grpo(torch.tensor([1.0, 0.0, 1.0]), 3)[:2])
    assert result[2] == 0


def test_the_bonus_is_capped_at_half_of_the_advantage():
    # A = ±1/√2·… : with rewards 1e4 and 0, std 1e4/√2, A = ±.7071. α H = .04, .4; cap .35355.
    result = entropy_shaped(torch.tensor([1e4, 0.0]), 2, torch.tensor([[0.1, 1.0], [0.1, 1.0]]))
    half = 0.5**0.5
    expected = torch.tensor([[half + 0.04, 1.5 * half], [-half + 0.04, -half / 2]])
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)


def test_a_single_right_answer_is_not_trained_by_rounding():
    # Alone in O⁺, its r̃ is constant: advantage 0. In single precision 1e-7 of rounding over √1e-8 would be 1e-3.
    generator = torch.Generator().manual_seed(0)
    entropies, lengths = 2 * torch.rand((40, 7), generator=generator), torch.randint(1, 8, (40,), generator=generator)
    mask = (torch.arange(7) < lengths[:, None]).long()
    rewards = (torch.arange(40) % 4 == 0).float()
    assert gtpo(rewards, 4, entropies, mask)[::4].abs().max() < 1e-8


def test_masked_tokens_and_the_end_token_have_no_value_to_ktae():
    rewards = torch.tensor([1.0, 0.0])
    ids, mask = torch.tensor([[5, 6, 2], [7, 5, 2]]), torch.tensor([[1, 0, 1], [1, 1, 0]])
    result = ktae(rewards, 2, ids, mask, end_token_id=2) - grpo(rewards, 2)[:, None]
    assert (result[mask == 0] == 0).all()
    assert (result[ids == 2] == 0).all()
    assert result[1, 0] < -0.99
    assert abs(result[0, 0]) < 0.5  # 5 is in both


def test_ktae_without_a_right_answer_is_grpo():
    rewards = torch.tensor([0.0, -1.0])
    ids = torch.tensor([[5], [6]])
    assert torch.equal(ktae(rewards, 2, ids, torch.ones_like(ids)), grpo(rewards, 2)[:, None])


def test_a_token_in_conflict_from_both_sides_weighs_the_square():
    ids = torch.tensor([[TAG, END], [TAG, END]])
    found = gtpo_conflict(
        torch.tensor([1.0, 0.0]), 2, ids, torch.ones_like(ids), torch.zeros(2, 2), conflict_weight=3.0
    )
    assert found.tolist() == [[4.5, 4.5], [0.0, 0.0]]


def test_entropy_is_paid_for_and_too_much_of_it_leaves_a_response_out():
    ids, mask = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 1], [1, 0]])
    rewards, entropies = torch.tensor([1.0, 0.0]), torch.tensor([[0.2, 0.4], [1.0, 9.0]])
    found = gtpo_conflict(rewards, 2, ids, mask, entropies)  # mean entropies .3 and 1: .5 − .03, and left out
    torch.testing.assert_close(found, torch.tensor([[0.47, 0.47], [0.0, 0.0]]))
    found = gtpo_conflict(rewards, 2, ids, mask, entropies, max_entropy=None)
    torch.testing.assert_close(found, torch.tensor([[0.47, 0.47], [-0.6, 0.0]]))


def test_a_group_with_few_verdicts_uses_all_it_has():
    few = pass_at_k(torch.tensor([1.0, 0.0, NAN, NAN]), 4, k=4)
    assert (few[:2] == 0).all()  # pass@2 of two, one right: certain


def test_very_unlikely_answers_stay_finite():
    logps = torch.tensor([[-1.0], [-5000.0], [-9000.0]])
    result = disco(torch.tensor([1.0, 0.0, 0.0]), 3, logps, torch.ones(3, 1, dtype=torch.long), tau=1.0)
    assert result.tolist() == [1.0, -1.0, 0.0]


def test_unlikely_right_answers_earn_more_by_hand():
    # Σ log π = −2, −4, −6, −8: ranks 3, 2, 1, 0 of 4. r' = 1·(1 − ¼·¾) = 13/16, 0, 1·(1 − ¼·¼) = 15/16, 0.
    logps = -torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    result = unlikeliness(torch.tensor([1.0, 0.0, 1.0, 0.0]), 4, logps, ONES)
    torch.testing.assert_close(result, grpo(torch.tensor([13 / 16, 0.0, 15 / 16, 0.0]), 4))


def test_a_group_of_right_answers_is_trained_and_one_of_zeros_is_not():
    logps = -torch.arange(8.0).view(4, 2)
    assert (unlikeliness(torch.ones(4), 4, logps, ONES) != 0).any()
    assert (unlikeliness(torch.zeros(4), 4, logps, ONES) == 0).all()


def test_a_group_of_equal_rewards_is_compared_with_the_batch_by_the_original_alone():
    rewards, lengths = torch.tensor([1.0, 1.0, 0.0, 1.0]), torch.ones(4, dtype=torch.long)
    assert (reinforce_pp_original(rewards, lengths)[:2] > 0).all()
    assert (reinforce_pp_token(rewards, 2, lengths)[:2] == 0).all()

"""GDPO by hand; the numbers of TRL's own lines are in golden.json."""

import torch

from evenkeel.trainer.algorithms.advantages.multi_reward import gdpo
from tests.trainer.algorithms.advantages.rollouts import NAN


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

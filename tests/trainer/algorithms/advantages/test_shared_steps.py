"""λ-GRPO of the process-reward view: a shared step counts once; the authors' tree is in golden.json."""

import torch
from hypothesis import given

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.algorithms.advantages.shared_steps import shared_step_grpo
from tests.trainer.algorithms.advantages.rollouts import NAN, property_test, rollouts


def test_by_hand():
    ids = torch.tensor([[1, 7, 9], [1, 7, 8], [1, 6, 9], [1, 6, 9]])
    rewards = torch.tensor([1.0, 0.0, NAN, 1.0])
    sharers = torch.tensor([[3, 2, 1], [3, 2, 1], [1, 1, 1], [3, 1, 1]])
    torch.testing.assert_close(shared_step_grpo(rewards, 4, ids), grpo(rewards, 4)[:, None] / sharers, equal_nan=True)


@property_test
@given(rollouts(unjudged=False))
def test_each_step_has_weight_one(rollout):
    group_size, ids = rollout["group_size"], rollout["completion_ids"]
    rows = torch.arange(len(ids))
    rewards = 2.0 ** (rows % group_size)  # no advantage is 0
    shares = shared_step_grpo(rewards, group_size, ids) / grpo(rewards, group_size)[:, None]
    for length in range(1, ids.shape[1] + 1):
        prefixes = torch.cat([(rows // group_size)[:, None], ids[:, :length]], dim=1)
        steps, step_of_row = prefixes.unique(dim=0, return_inverse=True)
        weight = torch.zeros(len(steps)).index_add(0, step_of_row, shares[:, length - 1])
        torch.testing.assert_close(weight, torch.ones(len(steps)), rtol=1e-4, atol=0.0)

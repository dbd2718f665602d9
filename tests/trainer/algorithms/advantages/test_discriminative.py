"""DisCO and REAL: the advantage is the gradient of the objective; the authors' gradients are in golden.json."""

import pytest
import torch
from hypothesis import given

from evenkeel.trainer.algorithms.advantages.discriminative import disco, real
from tests.trainer.algorithms.advantages.rollouts import property_test, rollouts


@pytest.mark.parametrize("tau", [10.0, 0.5])
@property_test
@given(rollouts(unjudged=False))
def test_it_is_the_gradient_of_the_published_objective(tau, rollout):
    rewards, group_size, mask = rollout["rewards"], rollout["group_size"], rollout["mask"]
    logps = rollout["old_logps"].double()
    scores = ((logps * mask).sum(1) / mask.sum(1)).requires_grad_()
    objective = torch.zeros((), dtype=torch.float64)
    for own_rewards, own in zip(rewards.split(group_size), scores.split(group_size), strict=True):
        right, wrong = own[own_rewards >= 1], own[own_rewards < 1]
        if len(right) and len(wrong):
            objective = objective + right.mean() - tau * (wrong / tau).exp().mean().log()
    (expected,) = torch.autograd.grad(objective + 0 * scores.sum(), scores)
    result = disco(rewards, group_size, rollout["old_logps"], mask, tau=tau)
    torch.testing.assert_close(result, expected.float(), rtol=1e-4, atol=1e-6)


def test_very_unlikely_answers_stay_finite():
    logps = torch.tensor([[-1.0], [-5000.0], [-9000.0]])
    result = disco(torch.tensor([1.0, 0.0, 0.0]), 3, logps, torch.ones(3, 1, dtype=torch.long), tau=1.0)
    assert result.tolist() == [1.0, -1.0, 0.0]


def test_a_group_without_a_right_answer_teaches_nothing():
    logps = torch.zeros(3, 1)
    assert (disco(torch.tensor([0.5, 0.0, 0.25]), 3, logps, torch.ones(3, 1, dtype=torch.long)) == 0).all()


def test_labels_count_by_how_many_there_are_of_their_kind():
    # τ = 1/2: two right ones 2/(1 + 2), three wrong ones −2/(1 + 3); a group of one kind 0
    rewards = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25])
    lengths = torch.tensor([4, 2, 1, 4, 2, 1, 1, 1, 1, 1])
    expected = torch.tensor([2 / 3, -0.5, -0.5, 2 / 3, -0.5, 0, 0, 0, 0, 0])
    torch.testing.assert_close(real(rewards, 5, lengths), expected)
    torch.testing.assert_close(real(rewards, 5, lengths, length_normalised=True), expected / lengths)
    with pytest.raises(ValueError, match="Write tau > 0"):
        real(rewards, 5, lengths, tau=0.0)

"""RLSD by hand and against its repository's gradients; SDPO in a mixture, by hand."""

import pytest
import torch

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.algorithms.teachers import TEMPLATE
from evenkeel.trainer.algorithms.token_weights.self_distilled import rlsd
from tests.trainer.algorithms.advantages.rollouts import NAN, rollout
from tests.trainer.algorithms.published import published_cases


@pytest.mark.parametrize("case", published_cases("token_weights", "rlsd"), ids=lambda case: str(case["options"]))
def test_weights_are_the_gradients_of_the_published_loss(case):
    weights = rlsd(case["advantages"], case["old_logps"], case["teacher_logps"], case["step"], **case["options"])
    torch.testing.assert_close(weights * case["mask"], case["weights"], rtol=1e-5, atol=1e-5)


def test_rlsd_by_hand():
    # π_T / π_old = 2 and 1/2: clipped to 1.2 and .8, half of each and half of 1; turned over where A < 0; 1 where A = 0
    ratio = torch.tensor([[2.0, 0.5]]).log().expand(3, 2)
    signal = torch.tensor([[3.0], [-1.0], [0.0]]).expand(3, 2)
    expected = torch.tensor([[1.1, 0.9], [0.9, 1.1], [1.0, 1.0]])
    torch.testing.assert_close(rlsd(signal, torch.zeros(3, 2), ratio, 0), expected)
    halved = 1 + (expected - 1) / 2
    torch.testing.assert_close(rlsd(signal, torch.zeros(3, 2), ratio, 5, decay_steps=10), halved)
    assert (rlsd(signal, torch.zeros(3, 2), ratio, 99, decay_steps=10) == 1).all()
    with pytest.raises(ValueError, match=r"max_change = 1\.5"):
        rlsd(signal, ratio, ratio, 0, max_change=1.5)


def test_sdpo_in_a_mixture_with_grpo_credits_dead_groups_too():
    rewards = torch.tensor([1.0, 0.0, 0.0, NAN, 1.0, 1.0, 1.0, 1.0])
    signals = rollout(rewards, 4, torch.tensor([1, 2, 3, 4, 5, 4, 3, 2]), torch.Generator().manual_seed(0))
    mixed = build_strategies({"name": "mix", "of": {"grpo": 0.5, "sdpo": 0.5}})
    assert mixed.teacher is not None
    assert mixed.teacher.template == TEMPLATE
    found = update.advantages(mixed, signals, "in a test")
    group = update.advantages(build_strategies("grpo"), signals, "in a test")
    evidence = (signals["teacher_logps"] - signals["old_logps"]) * signals["mask"]
    expected = (group[:, None] + evidence) / 2
    expected[3] = 0.0  # unjudged
    torch.testing.assert_close(found, expected)
    assert (found[4:] != 0).any()


def test_a_teacher_that_nobody_asks_for_is_refused():
    with pytest.raises(PartError, match="no strategy names teacher_logps"):
        build_strategies("grpo", teacher={"template": TEMPLATE})

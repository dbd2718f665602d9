"""RLSD and RLCSD by hand and against their repository's gradients; SDPO in a mixture, by hand."""

import pytest
import torch

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.strategies import build_strategies
from evenkeel.trainer.algorithms.teachers import SIBLING_TEMPLATE, TEMPLATE, contrast, contrasted_siblings
from evenkeel.trainer.algorithms.token_weights.self_distilled import rlcsd, rlsd
from tests.trainer.algorithms.advantages.rollouts import NAN, rollout
from tests.trainer.algorithms.published import published_cases


@pytest.mark.parametrize("case", published_cases("token_weights", "rlsd"), ids=lambda case: str(case["options"]))
def test_weights_are_the_gradients_of_the_published_loss(case):
    weights = rlsd(case["advantages"], case["old_logps"], case["teacher_logps"], case["step"], **case["options"])
    torch.testing.assert_close(weights * case["mask"], case["weights"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", published_cases("token_weights", "rlcsd"), ids=lambda case: str(case["options"]))
def test_contrast_and_weights_are_the_gradients_of_the_published_loss(case):
    found = contrast(case["behind"], case["siblings"])
    weights = rlcsd(case["advantages"], case["mask"], found, **case["options"])
    torch.testing.assert_close(weights * case["mask"], case["weights"], rtol=1e-4, atol=1e-4)


def test_contrast_by_hand():
    # Behind the right sibling .8; behind the wrong ones .2 and .6, mean .4: log 2. One wrong one: log .8 / .2. None: 0.
    behind = torch.tensor([0.8, 0.2, 0.6]).log()[:, None, None].expand(3, 3, 1)
    siblings = torch.tensor([[1, 2, 3], [1, 2, -1], [-1, -1, -1]])
    torch.testing.assert_close(contrast(behind, siblings).exp(), torch.tensor([[2.0], [4.0], [1.0]]))


def test_siblings_are_others_of_the_group_right_first():
    correct = torch.tensor([1.0, 1.0, 0.0, 0.0, NAN, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    of_each = contrasted_siblings(correct, 5, 4, seed=3).tolist()
    first = [[1, {2, 3}], [0, {2, 3}], [{0, 1}, {3}], [{0, 1}, {2}], [{0, 1}, {2, 3}]]
    for found, (right, wrong) in zip(of_each[:5], first, strict=True):
        assert found[0] in (right if isinstance(right, set) else {right})
        assert {row for row in found[1:] if row >= 0} == wrong
    assert of_each[5] == [-1] * 5, "the only right one has no right sibling"
    assert all(found[0] == 5 and 5 not in found[1:] and row not in found for row, found in enumerate(of_each[6:10], 6))
    assert of_each[10:] == [[-1] * 5] * 5
    assert contrasted_siblings(correct, 5, 4, seed=3).tolist() == of_each
    drawn = {tuple(contrasted_siblings(correct, 5, 1, seed=seed)[0].tolist()) for seed in range(20)}
    assert drawn == {(1, 2), (1, 3)}


def test_sdpo_in_a_mixture_with_grpo_credits_dead_groups_too():
    rewards = torch.tensor([1.0, 0.0, 0.0, NAN, 1.0, 1.0, 1.0, 1.0])
    mask = (torch.arange(5) < torch.tensor([1, 2, 3, 4, 5, 4, 3, 2])[:, None]).long()
    signals = rollout(rewards, 4, mask, torch.Generator().manual_seed(0))
    mixed = build_strategies({"name": "mix", "of": {"grpo": 0.5, "sdpo": 0.5}})
    assert mixed.teacher is not None
    assert mixed.teacher.template == TEMPLATE
    found = update.advantages(mixed, signals, "in a test")
    group = update.advantages(build_strategies("grpo"), signals, "in a test")
    evidence = (signals["teacher_logps"] - signals["old_logps"]) * signals["mask"]
    expected = (group[:, None] + evidence) / 2
    expected[3] = 0.0  # unscored
    torch.testing.assert_close(found, expected)
    assert (found[4:] != 0).any()


def test_a_teacher_that_nobody_asks_for_is_refused():
    for advantage, option in (("grpo", {"template": TEMPLATE}), ("sdpo", {"wrong_siblings": 2})):
        with pytest.raises(PartError, match=next(iter(option))) as refusal:
            build_strategies(advantage, teacher=option)
        assert refusal.value.code == "unused-teacher"
    taught = build_strategies("sdpo", "rlcsd", teacher={"template": TEMPLATE, "sibling_template": SIBLING_TEMPLATE})
    assert taught.taught == ["teacher_logps", "teacher_contrast"]

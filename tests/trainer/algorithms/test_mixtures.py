"""Estimators added up: what the sum is, what it declares, what it remembers, and mixtures that are none."""

import pytest
import torch

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms import update
from evenkeel.trainer.algorithms.strategies import build_strategies
from tests.trainer.algorithms.advantages.rollouts import NAN, estimate, rollout

REWARDS = torch.tensor([1.0, 0.0, 0.0, NAN, 1.0, 1.0, 1.0, 1.0])


def mixed(**of):
    return build_strategies({"name": "mix", "of": of})


@pytest.fixture
def signals():
    mask = (torch.arange(5) < torch.tensor([1, 2, 3, 4, 5, 4, 3, 2])[:, None]).long()
    return rollout(REWARDS, 4, mask, torch.Generator().manual_seed(0))


def test_a_mixture_is_the_weighted_sum(signals):
    found = update.advantages(mixed(dr_grpo=0.25, wapo=2), signals, "in a test")
    # centred (2/3, −1/3, −1/3), winners (2/3, 0, 0): .25 · 2/3 + 2 · 2/3 = 3/2, −1/12; unscored and the dead group 0
    torch.testing.assert_close(found, torch.tensor([1.5, -1 / 12, -1 / 12, 0.0, 0.0, 0.0, 0.0, 0.0]))
    alone = mixed(grpo=1)
    assert torch.equal(update.advantages(alone, signals, ""), update.advantages(build_strategies("grpo"), signals, ""))
    assert alone.advantage.name == "1 grpo"
    assert not alone.advantage.has_state


def test_options_stand_beside_the_weight_and_tokens_are_credited_where_one_part_does(signals):
    strategies = mixed(rloo=0.5, gtpo={"weight": 0.5, "alpha_2": 0.3})
    assert strategies.advantage.token_level
    expected = 0.5 * estimate("rloo", signals)[:, None] + 0.5 * estimate("gtpo", signals, alpha_2=0.3)
    found = update.advantages(strategies, signals, "in a test")
    torch.testing.assert_close(found, expected.nan_to_num())


def test_only_the_part_that_trains_dead_groups_does(signals):
    strategies = mixed(grpo=0.5, reinforce=0.5)
    assert strategies.advantage.traits.trains_dead_groups
    assert update.advantages(strategies, signals, "")[4:].tolist() == [0.5] * 4


def test_it_declares_what_any_part_does_and_cancels_where_all_do():
    assert mixed(exchangeable=0.5, exchangeable_prefix_tree=0.5).advantage.traits.cancels_shared_tokens is True
    both = mixed(exchangeable=0.5, exchangeable_token_class=0.5)
    assert both.advantage.traits.cancels_shared_tokens == "classes"
    assert both.keep_groups == "step"
    other = mixed(exchangeable=0.5, gpg=0.5).advantage
    assert other.traits.cancels_shared_tokens is False
    assert other.traits.depends_on_other_groups
    assert other.signals == {"rewards", "group_size", "mask", "sequence_weights"}


def test_what_a_part_remembers_is_saved_and_restored(signals):
    of = {"tests.trainer.algorithms.test_trial:OfEarlierBatches": 1.0, "grpo": 0.5}
    strategy, fresh = (build_strategies({"name": "mix", "of": of}).advantage for _ in range(2))
    first, second = strategy(signals), strategy(signals)
    assert (second[0] - first[0]).item() == pytest.approx(-5 / 14)  # against half of the mean of seven, 0 before
    fresh.function.load_state_dict(strategy.function.state_dict())
    assert torch.equal(fresh(signals).nan_to_num(), strategy(signals).nan_to_num())


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"name": "mix"}, "mixture-of-nothing"),
        ({"name": "mix", "of": {"grpo": 0.0}}, "weight-of-a-mixture"),
        ({"name": "mix", "of": {"pass_at_k": {"k": 4}}}, "weight-of-a-mixture"),
        ({"name": "mix", "of": {"mix": 1.0}}, "weight-of-a-mixture"),
    ],
)
def test_what_is_no_mixture_is_refused(spec, code):
    with pytest.raises(PartError) as refusal:
        build_strategies(spec)
    assert refusal.value.code == code

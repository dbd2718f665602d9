"""Rollouts that every built-in estimator can be tried on.

Rewards are drawn in eighths: sums of them are exact in float32, so that the properties have tight tolerances.
"""

import inspect

import torch
from hypothesis import settings
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.contract import ADVANTAGE, SIGNALS
from evenkeel.trainer.algorithms.registry import built_in
from evenkeel.trainer.algorithms.turns import turn_numbers

NAN = float("nan")
LENGTH = 5

property_test = settings(max_examples=15, deadline=None, derandomize=True)


ESTIMATORS = built_in(ADVANTAGE)


def estimate(name, rollout, **options):
    """What the estimator makes of a rollout: of the signals it names."""
    wanted = inspect.signature(ESTIMATORS[name]).parameters
    return ESTIMATORS[name](**{signal: value for signal, value in rollout.items() if signal in wanted}, **options)


def rows_of(rollout, order):
    """The rollout with its rows in another order, or fewer of them."""
    kept = ("group_size", "reward_weights", "step", "max_steps")
    return {name: value if name in kept else value[order] for name, value in rollout.items()}


@st.composite
def rollouts(draw, unscored=True, lowest=0, highest=8, min_group_size=4):
    """One to three groups of four to six responses over an alphabet of two tokens; rewards in eighths from 0 to 1.

    Two reward functions of weights 1 and 1 halve the reward, so that their sum is the reward exactly.
    """
    group_size, num_groups = draw(st.integers(min_group_size, 6)), draw(st.integers(1, 3))
    count = group_size * num_groups
    reward = st.one_of(
        st.integers(lowest, highest).map(lambda eighths: eighths / 8),
        st.sampled_from([0.0, 1.0]),
        *([st.just(NAN)] if unscored else []),
    )
    rewards = torch.tensor(draw(st.lists(reward, min_size=count, max_size=count)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    lengths = torch.tensor(draw(st.lists(st.integers(1, LENGTH), min_size=count, max_size=count)))
    return rollout(rewards, group_size, lengths, generator)


def rollout(rewards, group_size, lengths, generator):
    """All signals of an estimator for the given rewards and lengths, the rest drawn from ``generator``: one turn each,
    unpaid, in one state."""
    mask = (torch.arange(LENGTH) < lengths[:, None]).long()
    quarters = torch.randint(0, 5, rewards.shape, generator=generator) / 4
    signals = {
        "rewards": rewards,
        "group_size": group_size,
        "rewards_per_function": torch.stack([rewards * quarters, rewards * (1 - quarters)], dim=1),
        "reward_weights": torch.ones(2),
        "correct": (rewards >= 1).float().masked_fill(rewards.isnan(), NAN),
        "lengths": lengths,
        "completion_ids": torch.randint(1, 3, mask.shape, generator=generator) * mask,
        "mask": mask,
        "old_logps": -3 * torch.rand(mask.shape, generator=generator),
        "sum_pi_squared": torch.rand(mask.shape, generator=generator),
        "entropies": 2 * torch.rand(mask.shape, generator=generator),
        "teacher_contrast": torch.zeros(mask.shape),
        "teacher_logps": -3 * torch.rand(mask.shape, generator=torch.Generator().manual_seed(1)),
        "sequence_weights": torch.ones(len(rewards)),
        "turns": turn_numbers(mask),
        "turn_rewards": torch.zeros(len(rewards), 1),
        "state_keys": torch.zeros(len(rewards), 1).long(),
        "step": 0,
        "max_steps": 100,
    }
    assert set(signals) == set(SIGNALS[ADVANTAGE])
    return signals

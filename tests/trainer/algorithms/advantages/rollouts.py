"""Rollouts that every built-in strategy can be tried on.

Rewards are drawn in eighths: sums of them are exact in float32, so that the properties have tight tolerances.
"""

import inspect

import torch
from hypothesis import settings
from hypothesis import strategies as st

from evenkeel.trainer.algorithms.contract import ADVANTAGE
from evenkeel.trainer.algorithms.registry import built_in
from evenkeel.trainer.algorithms.row_draws import row_keys
from evenkeel.trainer.algorithms.turns import turn_numbers

NAN = float("nan")
LENGTH = 5

property_test = settings(max_examples=15, deadline=None, derandomize=True)


ESTIMATORS = built_in(ADVANTAGE)


def estimate(name, rollout, **options):
    """What the estimator makes of a rollout: of the signals it names."""
    wanted = inspect.signature(ESTIMATORS[name]).parameters
    return ESTIMATORS[name](**{signal: value for signal, value in rollout.items() if signal in wanted}, **options)


@st.composite
def rollouts(draw):
    """One to three groups of two to six responses over an alphabet of three tokens; some are unscored."""
    group_size, num_groups = draw(st.integers(2, 6)), draw(st.integers(1, 3))
    count = group_size * num_groups
    eighths = st.integers(-16, 24).map(lambda number: number / 8)
    rewards = draw(st.lists(eighths | st.sampled_from([0.0, 1.0, NAN]), min_size=count, max_size=count))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    lengths = torch.tensor(draw(st.lists(st.integers(1, LENGTH), min_size=count, max_size=count)))
    return rollout(torch.tensor(rewards), group_size, (torch.arange(LENGTH) < lengths[:, None]).long(), generator)


def rollout(rewards, group_size, mask, generator):
    """The signals of all strategies for the given rewards and mask, the rest drawn from ``generator``."""
    rows, scored, turns = len(rewards), ~rewards.isnan(), turn_numbers(mask)
    has_turn = torch.arange(int(turns.max()) + 1) <= turns.amax(1)[:, None]
    probs = torch.rand(mask.shape, generator=generator).clamp(1e-3, 1 - 1e-3)
    log_ratio = 0.5 * torch.randn(mask.shape, generator=generator)
    advantages = torch.randn(rows, generator=generator) * scored
    return {
        "rewards": rewards,
        "group_size": group_size,
        "rewards_per_function": torch.stack([rewards, (rewards > 0).float().where(scored, torch.nan)], dim=1),
        "reward_weights": torch.tensor([0.75, 0.25]),
        "correct": (rewards > 0.5).float().where(scored, torch.nan),
        "lengths": mask.sum(1),
        "completion_ids": torch.randint(1, 4, mask.shape, generator=generator) * mask,
        "mask": mask,
        "sum_pi_squared": probs**2 + (1 - probs) ** 2,
        "sequence_weights": torch.ones(rows),
        "turns": turns,
        "turn_rewards": (torch.randint(0, 5, has_turn.shape, generator=generator) / 4).where(has_turn, torch.nan),
        "state_keys": torch.randint(0, 2, has_turn.shape, generator=generator).masked_fill(~has_turn, -1),
        "probs": probs,
        "old_logps": probs.log(),
        "teacher_logps": probs.flip(1).log(),
        "teacher_contrast": 0.1 * (probs - probs.flip(0)),
        "logps": probs.log() + log_ratio,
        "log_ratio": log_ratio,
        "entropies": 2 * torch.rand(mask.shape, generator=generator) + 1e-3,
        "advantages": advantages[:, None].expand(mask.shape),
        "groups": torch.arange(rows) // group_size,
        "scored": scored,
        "row_keys": row_keys(rows, 0),
        "repair": torch.rand(rows, generator=generator),
        "edited": torch.rand(mask.shape, generator=generator) < 0.5,
        "step": 3,
        "max_steps": 10,
    }

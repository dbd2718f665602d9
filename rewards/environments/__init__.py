"""Environments in which a policy acts between its turns, and tools. No torch, no TRL."""

from evenkeel.rewards.environments.building import build_environment, has_reward, trial_problem
from evenkeel.rewards.environments.row_environment import RowEnvironment, by_turn
from evenkeel.rewards.environments.user_objects import UnavailableError

__all__ = ["RowEnvironment", "UnavailableError", "build_environment", "by_turn", "has_reward", "trial_problem"]

"""Environments and tools: what a policy may act on between its turns. No torch, no TRL.

=================  ==================================================================================================
`row_environment`  a user's environment as a trainer is given it: limits of time, failures, what was recorded by turn
`user_objects`     where the user's object lives: here, or in a process of its own
`side_by_side`     calls of different rows made at once
`shipped`          a sandboxed Python, and two games whose best policies are known
`tools`            functions as tools, each call in a worker process
`building`         by name, built and tried
=================  ==================================================================================================
"""

from evenkeel.rewards.environments.building import (
    EnvironmentPartError,
    build_environment,
    has_reward,
    tools_of,
    trial_problem,
)
from evenkeel.rewards.environments.row_environment import RowEnvironment, by_turn
from evenkeel.rewards.environments.user_objects import UnavailableError

__all__ = [
    "EnvironmentPartError",
    "RowEnvironment",
    "UnavailableError",
    "build_environment",
    "by_turn",
    "has_reward",
    "tools_of",
    "trial_problem",
]

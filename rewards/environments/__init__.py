"""Environments and tools: what a policy may act on between its turns. No torch, no TRL.

=================  ==================================================================================================
`row_environment`  a user's environment as a trainer is given it: calls of rows at once, what was recorded
`user_objects`     the process of users' objects and tools
`shipped`          a sandboxed Python, and two games whose best policies are known
`tools`            a calculator
`building`         by name, built and tried
=================  ==================================================================================================
"""

from evenkeel.rewards.environments.building import (
    build_environment,
    has_reward,
    trial_problem,
)
from evenkeel.rewards.environments.row_environment import RowEnvironment, by_turn
from evenkeel.rewards.environments.user_objects import UnavailableError

__all__ = [
    "RowEnvironment",
    "UnavailableError",
    "build_environment",
    "by_turn",
    "has_reward",
    "trial_problem",
]

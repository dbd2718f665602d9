"""Environments in which a policy acts between its turns, and tools. No torch, no TRL.

=================  ==================================================================================================
`row_environment`  the class that TRL gets for a user's environment: calls of rows in parallel, records
`user_objects`     the process that holds users' objects and tools
`shipped`          a sandboxed Python, two games whose best policies are known, and a calculator
`building`         environments and tools by name, built and tried
=================  ==================================================================================================
"""

from evenkeel.rewards.environments.building import build_environment, has_reward, trial_problem
from evenkeel.rewards.environments.row_environment import RowEnvironment, by_turn
from evenkeel.rewards.environments.user_objects import UnavailableError

__all__ = ["RowEnvironment", "UnavailableError", "build_environment", "by_turn", "has_reward", "trial_problem"]

"""The tasks of the reasoning-gym library (optional extra): its generators as data, its scorers in a sandbox.

The library's scorers alone are not verifiers. Several pass the model's text to ``eval`` or sympy's ``parse_expr``,
which runs it as code; several pay partial scores for near misses or for naming everything. Here a scorer runs in the
sandbox, on answers that cannot be programs, and only its full score counts.
"""

from evenkeel.rewards.verifiers.reasoning_gym.entries import reasoning_gym_rows
from evenkeel.rewards.verifiers.reasoning_gym.verifier import ReasoningGym

__all__ = ["ReasoningGym", "reasoning_gym_rows"]

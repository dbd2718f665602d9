"""The tasks of the reasoning-gym library (optional extra): its generators as data, its scorers behind a sandbox.

A library's scorer is not a verifier yet. Several hand the model's text to ``eval`` or sympy's ``parse_expr``, so that
it runs as code; several pay a part for a near miss, or for naming everything. Here a scorer runs in a confined process
of its own, on answers that cannot be programs, and only its full score counts.
"""

from evenkeel.rewards.verifiers.reasoning_gym.entries import reasoning_gym_rows
from evenkeel.rewards.verifiers.reasoning_gym.verifier import ReasoningGym

__all__ = ["ReasoningGym", "reasoning_gym_rows"]

"""The tasks of the reasoning-gym library (optional extra): its generators as data, its scorers in a sandbox."""

from evenkeel.rewards.verifiers.reasoning_gym.entries import reasoning_gym_rows
from evenkeel.rewards.verifiers.reasoning_gym.verifier import ReasoningGym

__all__ = ["ReasoningGym", "reasoning_gym_rows"]

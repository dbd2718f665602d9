"""Verifiers: what decides whether a completion is right. No torch, no TRL: they run anywhere."""

from collections.abc import Callable
from typing import Any

from rewards.generators import rows as generated
from rewards.registry import VerifierError, build_verifier
from rewards.reward_function import RewardFunction, reward_functions
from rewards.verifier import Verdict, Verifier
from rewards.verifiers.reasoning_gym import reasoning_gym_rows

GENERATORS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "knights_knaves": generated.knights_knaves,
    "countdown": generated.countdown,
    "reasoning_gym": reasoning_gym_rows,
    "arithmetic": generated.arithmetic,
    "small_programs": generated.small_programs,
}
"""Datasets made on the spot, by the name that ``data.<part>.generator`` gives."""

__all__ = ["GENERATORS", "RewardFunction", "Verdict", "Verifier", "VerifierError", "build_verifier", "reward_functions"]

"""Verifiers score completions against references. No torch, no TRL: they run anywhere."""

from evenkeel.errors import Refusal
from evenkeel.rewards.parts import GENERATORS, build_verifier
from evenkeel.rewards.registry import PartError
from evenkeel.rewards.reward_function import RewardFunction, reward_functions
from evenkeel.rewards.verifier import Verdict, Verifier

__all__ = [
    "GENERATORS",
    "PartError",
    "Refusal",
    "RewardFunction",
    "Verdict",
    "Verifier",
    "build_verifier",
    "reward_functions",
]

"""Verifiers: what decides whether a completion is right. No torch, no TRL: they run anywhere."""

from evenkeel.errors import Refusal
from evenkeel.rewards.parts import GENERATORS, VerifierError, build_verifier
from evenkeel.rewards.reward_function import RewardFunction, reward_functions
from evenkeel.rewards.verifier import Verdict, Verifier

__all__ = [
    "GENERATORS",
    "Refusal",
    "RewardFunction",
    "Verdict",
    "Verifier",
    "VerifierError",
    "build_verifier",
    "reward_functions",
]

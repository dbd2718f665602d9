"""`evenkeel.rewards.user_verifiers` under the name that users' files import it by."""

from evenkeel.rewards.user_verifiers import UserVerifier, bounded, traits, trial_problem

OwnVerifier = UserVerifier

__all__ = ["OwnVerifier", "bounded", "traits", "trial_problem"]

"""Verifiers that a user has written: bounded in time, kept from ending the run, and tried before the model is loaded.

A verifier that ships keeps its own limits. One of a user's may sleep, crash, call ``sys.exit`` or return a bare number.
`bounded` makes a verifier of it that does none of that to the run; `trial_problem` tries it on its own data first.
"""

from evenkeel.rewards.user_verifiers.traits import traits
from evenkeel.rewards.user_verifiers.trial import trial_problem
from evenkeel.rewards.user_verifiers.verifier import UserVerifier, bounded

__all__ = ["UserVerifier", "bounded", "traits", "trial_problem"]

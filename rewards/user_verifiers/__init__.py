"""Users' verifiers: bounded in time, kept from ending the run, and tried before the model is loaded.

A shipped verifier keeps its own limits. A user's may sleep, crash, call ``sys.exit`` or return a bare number: `bounded`
protects the run from that; `trial_problem` tries the verifier on its own data first.
"""

from evenkeel.rewards.user_verifiers.traits import traits
from evenkeel.rewards.user_verifiers.trial import trial_problem
from evenkeel.rewards.user_verifiers.trl_function import TRLFunction
from evenkeel.rewards.user_verifiers.verifier import TimedOut, UserVerifier, bounded, users_part

__all__ = ["TRLFunction", "TimedOut", "UserVerifier", "bounded", "traits", "trial_problem", "users_part"]

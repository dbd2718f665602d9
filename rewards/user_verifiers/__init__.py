"""Users' verifiers: bounded in time, and kept from ending the run.

A shipped verifier keeps its own limits. A user's may sleep, crash, call ``sys.exit`` or return a bare number: `bounded`
protects the run from that; `evenkeel.rewards.references` tries the verifier on its own data first.
"""

from evenkeel.rewards.user_verifiers.traits import traits
from evenkeel.rewards.user_verifiers.trl_function import TRLFunction
from evenkeel.rewards.user_verifiers.verifier import TimedOut, UserVerifier, bounded, users_part

__all__ = ["TRLFunction", "TimedOut", "UserVerifier", "bounded", "traits", "users_part"]

"""What the bench asks of verifiers, asked of anyone's reward function: TRL's signature, verl's, or a verifier's."""

from evenkeel.rewards.bench.audit.audit import Audit, Fault, audit
from evenkeel.rewards.bench.audit.caller import ANSWER, Asked, AuditError
from evenkeel.rewards.bench.audit.cases import KINDS, RIGHT, TASKS, Case, Kind

__all__ = [
    "ANSWER",
    "KINDS",
    "RIGHT",
    "TASKS",
    "Asked",
    "Audit",
    "AuditError",
    "Case",
    "Fault",
    "Kind",
    "audit",
]

"""Audit of a reward function by cases with known verdicts: TRL's signature, verl's, or a verifier's."""

from evenkeel.rewards.bench.audit.audit import Audit, Fault, audit
from evenkeel.rewards.bench.audit.caller import ANSWER
from evenkeel.rewards.bench.audit.cases import KINDS, RIGHT, TASKS, Kind

__all__ = ["ANSWER", "KINDS", "RIGHT", "TASKS", "Audit", "Fault", "Kind", "audit"]

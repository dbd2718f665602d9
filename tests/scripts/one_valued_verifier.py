"""Verifiers that tell nothing apart, for the tests of runs that train nothing."""

from typing import Any

from evenkeel.rewards import Verdict


def wrong(completion: str, reference: Any) -> Verdict:
    """Everything is wrong."""
    return Verdict(0.0, None, "wrong")


def right(completion: str, reference: Any) -> Verdict:
    """All that a tiny policy can write is right, and what a trial of the verifier writes is not."""
    return Verdict(float("turnip" not in completion), None, "right")

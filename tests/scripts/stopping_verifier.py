"""The share of digits, by a verifier that interrupts its own process when it judges for the n-th time."""

import os
import signal
from typing import Any

from evenkeel.rewards.verifier import Verdict
from tests.scripts.digit_verifier import share_of_digits

INTERRUPT_AT = "STOPPING_VERIFIER_AT"
"""Variable of the environment: which judgement, counted from 1 in this process, is interrupted."""
BY = "STOPPING_VERIFIER_BY"
"""Variable of the environment: the signal's name."""
judged = 0


def stopping(completion: str, reference: Any) -> Verdict:
    """The verdict of `share_of_digits`, which does not depend on the interruption."""
    global judged
    judged += 1
    if judged == int(os.environ.get(INTERRUPT_AT, "0")):
        os.kill(os.getpid(), getattr(signal, os.environ[BY]))
    return share_of_digits(completion, reference)

"""Users' own verifiers, for the tests that launch whole runs."""

import os
import time
from pathlib import Path
from typing import Any

from evenkeel.rewards import Verdict


def share_of_digits(completion: str, reference: Any) -> Verdict:
    """Right when at least half of the words are digits."""
    words = completion.split()
    share = sum(word.isdigit() for word in words) / max(len(words), 1)
    return Verdict(float(share >= 0.5), None, f"{share:.2f} of the words are digits")


def unhurried(completion: str, reference: Any) -> Verdict:
    """After WAIT_SECONDS (0.03) while the file that WAIT_WHILE names exists: a test can stop a run in the middle."""
    if Path(os.environ["WAIT_WHILE"]).exists():
        time.sleep(float(os.environ.get("WAIT_SECONDS", "0.03")))
    return share_of_digits(completion, reference)

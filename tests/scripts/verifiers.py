"""Users' own verifiers, for the tests that launch whole runs."""

import os
import time
from pathlib import Path
from typing import Any

from evenkeel.rewards import Verdict
from evenkeel.rewards.user_verifiers import traits

HANGS_BEHIND = "ONE_RANK_HANGS_BEHIND"
"""Variable of the environment: a file; of rank 1's verdicts after its appearance the fourth never ends, once."""
scored_behind = 0


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


@traits(timeout_s=3000)
def hangs(completion: str, reference: Any) -> Verdict:
    """On rank 1 alone, and not given up while a test looks."""
    global scored_behind
    scored_behind += os.environ.get("RANK") == "1" and Path(os.environ[HANGS_BEHIND]).exists()
    if scored_behind == 4 and not (hung := Path(f"{os.environ[HANGS_BEHIND]}.hung")).exists():
        hung.touch()  # the next process has its own count
        time.sleep(3600)
    return share_of_digits(completion, reference)

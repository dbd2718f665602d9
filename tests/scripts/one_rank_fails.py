"""Parts of a run that fail on rank 1 alone, for the tests that launch two processes."""

import os
import time
from pathlib import Path
from typing import Any

from evenkeel.rewards import Verdict
from evenkeel.rewards.user_verifiers import traits
from tests.scripts.digit_verifier import share_of_digits

HANGS_BEHIND = "ONE_RANK_HANGS_BEHIND"
"""Variable of the environment: a file; of rank 1's verdicts after its appearance the fourth never ends, once."""
scored_behind = 0


def _hangs_on_rank_1(completion: str) -> Verdict:
    global scored_behind
    scored_behind += os.environ.get("RANK") == "1" and Path(os.environ[HANGS_BEHIND]).exists()
    if scored_behind == 4 and not (hung := Path(f"{os.environ[HANGS_BEHIND]}.hung")).exists():
        hung.touch()  # the next process has its own count
        time.sleep(3600)
    return share_of_digits(completion, None)


@traits(timeout_s=3000)
def hangs(completion: str, reference: Any) -> Verdict:
    """Not given up while a test looks."""
    return _hangs_on_rank_1(completion)

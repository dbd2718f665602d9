"""A verifier that takes its time while a file is there, so that a test can stop a run in the middle."""

import os
import time
from pathlib import Path
from typing import Any

from evenkeel.rewards import Verdict
from tests.scripts.digit_verifier import share_of_digits


def unhurried(completion: str, reference: Any) -> Verdict:
    """As `share_of_digits`, after WAIT_SECONDS (0.03) while the file that WAIT_WHILE names exists."""
    if Path(os.environ["WAIT_WHILE"]).exists():
        time.sleep(float(os.environ.get("WAIT_SECONDS", "0.03")))
    return share_of_digits(completion, reference)

"""The share of digits, by a verifier that fills its run's disk at one judgement and makes room at a later one."""

import os
from pathlib import Path
from typing import Any

from evenkeel.rewards.verifier import Verdict
from tests.scripts.digit_verifier import share_of_digits

FILLER, FULL_FROM, FULL_TO = "FILLER", "FULL_FROM", "FULL_TO"
"""Variables of the environment: a file on the disk; the judgements, counted from 1, at which it grows and goes."""
judged = 0


def filling(completion: str, reference: Any) -> Verdict:
    """The verdict of `share_of_digits`."""
    global judged
    judged += 1
    filler = Path(os.environ[FILLER])
    if judged == int(os.environ[FULL_FROM]):
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 8, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue
    if judged == int(os.environ[FULL_TO]):
        filler.unlink()
    return share_of_digits(completion, reference)

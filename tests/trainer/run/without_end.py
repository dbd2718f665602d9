"""What judges for ever, in processes that import this file alone and so are soon there."""

import re
import time
from typing import Any

from evenkeel.rewards import Verdict
from evenkeel.rewards.user_verifiers import traits


def never_ends(item: Any) -> None:
    """A worker's target, in a pattern whose time doubles with each letter."""
    re.match("(a+)+$", 50 * "a" + "b")


@traits(timeout_s=100)
def sleeps(completion: str, reference: Any) -> Verdict:
    time.sleep(100)
    return Verdict(0.0, None, "")

"""GRPO, by an estimator that interrupts its own process in one rollout batch."""

import os
import signal
from typing import Any

from evenkeel.trainer.algorithms.advantages import grpo

INTERRUPT_AT = "STOPPING_ESTIMATOR_AT"
"""Variable of the environment: optimizer steps done before the rollout batch that is interrupted."""
BY = "STOPPING_ESTIMATOR_BY"
"""Variable of the environment: the signal's name."""


def stopping(rewards: Any, group_size: Any, step: int) -> Any:
    """GRPO's advantages, which do not depend on the interruption."""
    if str(step) == os.environ.get(INTERRUPT_AT):
        os.kill(os.getpid(), getattr(signal, os.environ[BY]))
    return grpo(rewards, group_size)

"""Strategies for the tests that launch whole runs: GRPO with a state, GRPO that fails, GRPO that is interrupted."""

import os
import signal
import sys
from typing import Any

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo

INTERRUPT_AT = "STOPPING_ESTIMATOR_AT"
"""Variable of the environment: optimizer steps done before the rollout batch that is interrupted."""
BY = "STOPPING_ESTIMATOR_BY"
"""Variable of the environment: the signal's name."""


class FadingGRPO:
    """GRPO's advantages, smaller from rollout batch to rollout batch: a lost state changes what is trained."""

    def __init__(self) -> None:
        self.batches = 0

    def __call__(self, rewards: Any, group_size: int) -> Any:
        self.batches += 1
        return grpo(rewards, group_size) * (1 + 1 / self.batches)

    def state_dict(self) -> dict[str, int]:
        return {"batches": self.batches}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.batches = state["batches"]


def failing(rewards: Any, group_size: int) -> Any:
    """GRPO's advantages of the few rows of a trial or a rehearsal; a whole rollout batch ends the process."""
    if len(rewards) == 16:
        sys.stdout.write("it fails on purpose\n")
        sys.stdout.flush()
        os._exit(1)
    return grpo(rewards, group_size)


def stopping(rewards: Any, group_size: Any, step: int) -> Any:
    """GRPO's advantages, which do not depend on the interruption."""
    if str(step) == os.environ.get(INTERRUPT_AT):
        os.kill(os.getpid(), getattr(signal, os.environ[BY]))
    return grpo(rewards, group_size)

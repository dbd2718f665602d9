"""Strategies for the tests that launch whole runs: one with a state of its own, and one that fails in training."""

import os
import sys
from typing import Any

from evenkeel.trainer.algorithms.advantages.group_baselines import grpo


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

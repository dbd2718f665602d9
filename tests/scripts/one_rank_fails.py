"""Parts of a run that fail on rank 1 alone, for the tests that launch two processes."""

import os
import time
from typing import Any

import torch

from rewards import Verdict
from rewards.own_verifiers import traits
from tests.scripts.digit_verifier import share_of_digits

HANGS_AT = 30
"""Which judgement of rank 1, counted from 1, never ends: of its fourth rollout batch of 8, or soon behind it."""
IMPOSSIBLE = 1 << 56
"""Bytes; torch's CPU allocator is asked for them and says no."""
judged = 0


def _hangs_on_rank_1(completion: str) -> Verdict:
    global judged
    judged += bool(completion.strip())  # not those that try the verifier before training
    if os.environ.get("RANK") == "1" and judged == HANGS_AT:
        time.sleep(3600)
    return share_of_digits(completion, None)


@traits(timeout_s=6)
def hangs_for_a_while(completion: str, reference: Any) -> Verdict:
    """Given up after its time."""
    return _hangs_on_rank_1(completion)


@traits(timeout_s=3000)
def hangs(completion: str, reference: Any) -> Verdict:
    """Not given up while a test looks."""
    return _hangs_on_rank_1(completion)


def greedy(probs: torch.Tensor, step: int) -> torch.Tensor:
    """A token weight that asks for more memory than there is behind the second optimizer step."""
    if step == 2 and os.environ.get("RANK") == "1":
        torch.empty(IMPOSSIBLE, dtype=torch.uint8)
    return torch.ones_like(probs)

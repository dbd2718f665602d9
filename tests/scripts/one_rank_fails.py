"""Parts of a run that fail on rank 1 alone, for the tests that launch two processes."""

import os
import time
from pathlib import Path
from typing import Any

import torch

from rewards import Verdict
from rewards.own_verifiers import traits
from tests.scripts.digit_verifier import share_of_digits

HANGS_BEHIND = "ONE_RANK_HANGS_BEHIND"
"""Variable of the environment: a file, behind whose appearance rank 1's next judgement never ends."""
IMPOSSIBLE = 1 << 56
"""Bytes; torch's CPU allocator is asked for them and says no."""
hung = False


def _hangs_on_rank_1(completion: str) -> Verdict:
    global hung
    if not hung and os.environ.get("RANK") == "1" and Path(os.environ[HANGS_BEHIND]).exists():
        hung = True
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

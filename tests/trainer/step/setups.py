"""What parts of a step are made from, of plain values."""

from typing import Any

import torch
from accelerate import Accelerator

from evenkeel.trainer.algorithms.strategies import Strategies, build_strategies
from evenkeel.trainer.step.choices import SWITCHES, Settings
from evenkeel.trainer.step.setup import Ranks, Setup


def setup_of(args: Any, strategies: Strategies | None = None) -> Setup:
    """A setup on the CPU with no switch taken, one reward function, padding 0 and the end 1."""
    return Setup(
        Settings(args, strategies or build_strategies()),
        dict.fromkeys(SWITCHES, False),
        Ranks(Accelerator(cpu=True)),
        type("Tokenizer", (), {"pad_token_id": 0}),
        lambda ids: [str(row) for row in ids],
        frozenset({1}),
        ["right"],
        torch.ones(1),
    )

"""What parts of a step are made from, of plain values."""

from dataclasses import replace
from typing import Any

import torch
from accelerate import Accelerator

from evenkeel.trainer.algorithms.strategies import Strategies, build_strategies
from evenkeel.trainer.step.choices import SWITCHES, Settings
from evenkeel.trainer.step.setup import Ranks, Setup

END = frozenset({1})


def setup_of(
    args: Any, strategies: Strategies | None = None, *taken: str, settings: Any = None, **changes: Any
) -> Setup:
    """A setup on the CPU, with one reward function and padding 0.

    Args:
        taken: names of `SWITCHES`.
        settings: fields of `Settings`; ``changes`` are fields of `Setup`.
    """
    made = Settings(args, build_strategies() if strategies is None else strategies, **(settings or {}))
    tokenizer = type("Tokenizer", (), {"pad_token_id": 0})
    setup = Setup(
        made,
        {name: name in taken for name in SWITCHES},
        Ranks(Accelerator(cpu=True)),
        tokenizer,
        lambda ids: [str(row) for row in ids],
        END,
        ["right"],
        torch.ones(1),
    )
    return replace(setup, **changes)

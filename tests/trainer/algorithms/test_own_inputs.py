"""A part may write into what it is handed, by whatever way: nobody else sees it, and its result is the pure one's."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, SIGNALS, TOKEN_WEIGHT, UpdateSchedule
from evenkeel.trainer.algorithms.registry import find_strategy
from evenkeel.trainer.algorithms.trial import tiny_example

WRITES: dict[str, Callable[[Tensor], Any]] = {
    "in place": lambda x: x.zero_(),
    "the storage": lambda x: x.untyped_storage().fill_(0),  # counts in no version counter
}
"""Ways to write into a tensor."""


def writer(kind: str, signal: str, write: Callable[[Tensor], Any]) -> Any:
    """A part of ``kind`` that writes into ``signal``, and returns what shows that it did."""
    names = ", ".join(dict.fromkeys(["rewards", signal] if kind == ADVANTAGE else ["mask", signal]))
    scope: dict[str, Any] = {"write": write}
    exec(f"def writes({names}):\n    write({signal})\n    return {signal}", scope)
    return scope["writes"]


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor):
        return bool(one == other)
    return torch.equal(one.double().nan_to_num(nan=9.0), other.double().nan_to_num(nan=9.0))


@pytest.mark.parametrize("kind", [ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT])
def test_no_write_into_a_signal_reaches_the_next_reader(kind):
    signals = tiny_example()
    before = {name: value.clone() if isinstance(value, Tensor) else value for name, value in signals.items()}
    tensors = [name for name in SIGNALS[kind] if isinstance(signals[name], Tensor)]
    for signal, way in product(tensors, WRITES):
        result = find_strategy(kind, writer(kind, signal, WRITES[way]))(signals)
        assert all(same(signals[name], value) for name, value in before.items()), (signal, way)
        assert not same(result, before[signal]), (signal, way)  # it did write, into its own


@pytest.mark.parametrize("position", range(3))
def test_nor_what_an_update_schedule_does_to_its_inputs(position):
    def select(probs, mask, pass_index, row_keys):
        WRITES["the storage"]((probs, mask, row_keys)[position])
        return mask.bool()

    signals = tiny_example()
    handed = [signals[name] for name in ("probs", "mask", "row_keys")]
    before = [value.clone() for value in handed]
    UpdateSchedule(1, select).kept(handed[0], handed[1], 0, handed[2])
    assert all(map(torch.equal, handed, before))

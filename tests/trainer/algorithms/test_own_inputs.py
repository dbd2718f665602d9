"""A part may write into what it is handed: nobody else sees it, and its result is the pure one's."""

from typing import Any

import pytest
import torch
from torch import Tensor

from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, SIGNALS, TOKEN_WEIGHT, UpdateSchedule
from evenkeel.trainer.algorithms.registry import find_strategy
from evenkeel.trainer.algorithms.trial import tiny_example


def write(tensor: Tensor) -> None:
    """In a way that no version counter counts."""
    tensor.untyped_storage().fill_(0)


def writer(kind: str, signal: str) -> Any:
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
    for signal in tensors:
        result = find_strategy(kind, writer(kind, signal))(signals)
        assert all(same(signals[name], value) for name, value in before.items()), signal
        assert not same(result, before[signal]), signal  # it did write, into its own


@pytest.mark.parametrize("position", range(3))
def test_nor_what_an_update_schedule_does_to_its_inputs(position):
    def select(probs, mask, pass_index, row_keys):
        write((probs, mask, row_keys)[position])
        return mask.bool()

    signals = tiny_example()
    handed = [signals[name] for name in ("probs", "mask", "row_keys")]
    before = [value.clone() for value in handed]
    UpdateSchedule(1, select).kept(handed[0], handed[1], 0, handed[2])
    assert all(map(torch.equal, handed, before))

"""A part may write into what it is handed, by whatever way: nobody else sees it, and its result is the pure one's."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from evenkeel.trainer.algorithms.contract import (
    ADVANTAGE,
    COEFFICIENT,
    PROMPT_SAMPLER,
    SIGNALS,
    TOKEN_WEIGHT,
    UpdateSchedule,
)
from evenkeel.trainer.algorithms.registry import find_strategy
from evenkeel.trainer.algorithms.trial import tiny_example

WRITES: dict[str, Callable[[Tensor], Any]] = {
    "in place": lambda x: x.zero_(),
    "an item": lambda x: x.__setitem__((..., slice(1, None)), 5),
    "a view": lambda x: x.view(-1)[1:].fill_(5),
    "detached": lambda x: x.detach().zero_(),
    ".data": lambda x: x.data.zero_(),  # counts in no version counter, as all below
    ".numpy()": lambda x: x.numpy().fill(0),
    "out=": lambda x: torch.sub(x, x, out=x) if x.dtype != torch.bool else torch.logical_not(x, out=x),
    "the storage": lambda x: x.untyped_storage().fill_(0),
}
"""Ways to write into a tensor."""

TENSORS = [
    (kind, name)
    for kind in (ADVANTAGE, TOKEN_WEIGHT, COEFFICIENT)
    for name in SIGNALS[kind]
    if isinstance(tiny_example()[name], Tensor)
]


def writer(kind: str, signal: str, write: Callable[[Tensor], Any]) -> Any:
    """A part of ``kind`` that writes into ``signal``, and returns what shows that it did."""
    names = ", ".join(dict.fromkeys(["rewards", signal] if kind == ADVANTAGE else ["mask", signal]))
    scope: dict[str, Any] = {"write": write}
    exec(f"def writes({names}):\n    write({signal})\n    return {signal}", scope)
    return scope["writes"]


def snapshot(signals: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in signals.items()}


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor):
        return bool(one == other)
    return torch.equal(one.double().nan_to_num(nan=9.0), other.double().nan_to_num(nan=9.0))


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize(("kind", "signal"), TENSORS)
def test_no_write_into_a_signal_reaches_the_next_reader(kind, signal, way):
    signals = tiny_example()
    before = snapshot(signals)
    result = find_strategy(kind, writer(kind, signal, WRITES[way]))(signals)
    assert all(same(signals[name], value) for name, value in before.items())
    assert not same(result, before[signal])  # it did write, into its own


def test_nor_into_a_column_of_lists_and_mappings_or_into_an_option():
    def writes(rewards, notes, *, thresholds: list[float]):
        notes["seen"].append(1.0)
        notes["scores"].zero_()
        thresholds.append(0.5)
        return rewards * len(thresholds)

    notes = {"seen": [], "scores": torch.ones(3)}
    part = find_strategy(ADVANTAGE, {"name": writes, "thresholds": [0.1]})
    results = [part({"rewards": torch.ones(2), "notes": notes}).tolist() for _ in range(2)]
    assert results == [[2.0, 2.0]] * 2
    assert (notes["seen"], notes["scores"].tolist(), part.options) == ([], [1.0] * 3, {"thresholds": [0.1]})


def test_nor_what_a_part_remembers_of_a_signal():
    class Remembers:
        def __init__(self):
            self.last = None

        def __call__(self, rewards):
            if self.last is not None:
                self.last.zero_()
            self.last = rewards
            return rewards

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    part, signals = find_strategy(ADVANTAGE, Remembers), {"rewards": torch.ones(2)}
    part(signals)
    part(signals)
    assert signals["rewards"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("position", range(3))
def test_nor_what_an_update_schedule_does_to_its_inputs(position, way):
    def select(probs, mask, pass_index, row_keys):
        WRITES[way]((probs, mask, row_keys)[position])
        return mask.bool()

    signals = tiny_example()
    handed = [signals[name] for name in ("probs", "mask", "row_keys")]
    before = [value.clone() for value in handed]
    UpdateSchedule(1, select).kept(handed[0], handed[1], 0, handed[2])
    assert all(map(torch.equal, handed, before))


def test_a_prompt_sampler_is_handed_numbers_alone():
    """They cannot be written into; `observe` gets tensors that are made for it."""
    assert all(meaning.startswith("int") for meaning in SIGNALS[PROMPT_SAMPLER].values())


def centres_in_place(rewards, group_size):
    groups = rewards.view(-1, group_size)
    groups -= groups.nanmean(1, keepdim=True)
    return rewards


def exponential_in_place(old_logps, mask):
    mask[:, 2:] = 0
    return old_logps.exp_() * mask


@pytest.mark.parametrize(
    ("kind", "in_place", "pure"),
    [
        (
            ADVANTAGE,
            centres_in_place,
            lambda s: s["rewards"] - s["rewards"].view(-1, 4).nanmean(1).repeat_interleave(4),
        ),
        (TOKEN_WEIGHT, exponential_in_place, lambda s: s["probs"] * s["mask"] * (torch.arange(6) < 2)),
        (COEFFICIENT, exponential_in_place, lambda s: s["probs"] * s["mask"] * (torch.arange(6) < 2)),
    ],
)
def test_its_result_is_that_of_the_out_of_place_form(kind, in_place, pure):
    torch.testing.assert_close(find_strategy(kind, in_place)(tiny_example()), pure(tiny_example()), equal_nan=True)

"""Every strategy on a device that is not the CPU: devices never mix, and what runs in each micro-batch never waits.

Tensors here have a shape, a type and a device, and no numbers (`FakeTensorMode`): what would have to read one raises.
The device is torch's meta device, which mixes with the CPU no more than a GPU does.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from evenkeel.trainer.algorithms.contract import ADVANTAGE, COEFFICIENT, TOKEN_WEIGHT, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.registry import built_in, find_strategy
from evenkeel.trainer.algorithms.trial import tiny_example

WAITING = {"bnpo_beta", "exchangeable_prefix_tree", "exchangeable_token_class", "gdpo", "gpg", "ktae", "maxrl"}
WAITING |= {"reinforce_pp", "reinforce_pp_original", "reinforce_pp_token"}
"""Estimators that wait for the device, once a rollout batch; what they do after they have waited is not seen here."""


def variants(strategy: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """No options; then each other value of each option that is one of a few words, or a switch."""
    yield {}
    called = strategy.__init__ if inspect.isclass(strategy) else strategy
    hints = get_type_hints(called)
    for option in inspect.signature(called).parameters.values():
        kinds = [hints.get(option.name), *get_args(hints.get(option.name))]
        words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
        values = [True, False] if bool in kinds else words
        yield from ({option.name: value} for value in values if value != option.default)


def outcome(kind: str, spec: dict[str, Any]) -> str:
    """``stays`` on the device, ``waits`` for it, or what is wrong."""
    strategy, signals = find_strategy(kind, spec), tiny_example()
    signals |= {column: torch.zeros(len(signals["rewards"])) for column in strategy.columns if column not in signals}
    try:
        with FakeTensorMode(allow_non_fake_inputs=False):
            there = {
                name: torch.empty(value.shape, dtype=value.dtype, device="meta")
                if isinstance(value, torch.Tensor)
                else value
                for name, value in signals.items()
            }
            if kind == "update_schedule":
                schedule, handed = strategy({}), [there[name] for name in ("probs", "mask", "row_keys")]
                probs, mask, keys = handed
                results = [schedule.kept(probs, mask, index, keys) for index in range(schedule.num_passes)]
            else:
                results = [strategy(there)]
    except (DataDependentOutputException, DynamicOutputShapeException):
        return "waits"
    except RuntimeError as error:  # of the mode: devices are mixed
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "stays" if {result.device.type for result in results} == {"meta"} else "is returned on the CPU"


def outcomes(kind: str) -> dict[str, str]:
    """What becomes of each variant of each strategy."""
    return {
        f"{name} {options or ''}".strip(): outcome(kind, {"name": name, **options})
        for name, strategy in built_in(kind).items()
        for options in variants(strategy)
    }


@pytest.mark.parametrize("kind", [TOKEN_WEIGHT, COEFFICIENT, UPDATE_SCHEDULE])
def test_what_runs_in_each_micro_batch_stays_on_the_device_and_never_waits(kind: str):
    found = outcomes(kind)
    assert {variant: outcome for variant, outcome in found.items() if outcome != "stays"} == {}
    assert kind != UPDATE_SCHEDULE or "lopti {'order': 'random'}" in found


def test_estimators_stay_on_the_device_and_those_that_wait_are_listed():
    found = outcomes(ADVANTAGE)
    assert {variant: outcome for variant, outcome in found.items() if outcome not in ("stays", "waits")} == {}
    assert {variant for variant, outcome in found.items() if outcome == "waits"} == WAITING

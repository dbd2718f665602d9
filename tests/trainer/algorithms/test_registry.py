"""Parts by name, and every way in which a part can be refused, with what its message says to write instead."""

import inspect
import re
import textwrap
from pathlib import Path

import pytest
import torch

from evenkeel.rewards.registry import PartError
from evenkeel.trainer.algorithms.advantages import dr_grpo
from evenkeel.trainer.algorithms.contract import ADVANTAGE, PROMPT_SAMPLER, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.registry import KINDS, Strategy, built_in, find_strategy
from evenkeel.trainer.algorithms.trial import tried, tried_sampler, tried_schedule


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which Python imports, as site-packages is."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def write_module(packages: Path, name: str, source: str) -> None:
    (packages / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")


def build(kind: str, spec) -> Strategy:
    found = find_strategy(kind, spec)
    if kind == UPDATE_SCHEDULE:
        tried_schedule(found)
        return found
    return tried_sampler(found) if kind == PROMPT_SAMPLER else tried(found)


NEEDED = {"curriculum": {"column": "people", "levels": [3, 4], "up_at": 0.9}}
"""Options without a default."""


def refused(kind, spec, code: str, *values: str) -> None:
    """``values`` are names and numbers that the message holds."""
    with pytest.raises(PartError) as error:
        build(kind, spec)
    assert error.value.code == code
    for value in values:
        assert value in str(error.value)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in built_in(kind)], ids=lambda value: value
)
def test_every_name_of_the_table_can_be_built_and_is_documented(kind, name):
    built = build(kind, {"name": name, **NEEDED.get(name, {})})
    assert built.function is built_in(kind)[name] or inspect.isclass(built_in(kind)[name])
    text = inspect.getdoc(built_in(kind)[name]) or ""
    assert text.splitlines()[0].endswith(".")
    assert name in ("uniform", "single_pass") or ("Source: " in text and "Evidence: " in text)


def test_options_are_bound_and_only_the_inputs_that_a_part_names_are_filled_in(packages):
    write_module(
        packages,
        "part_with_inputs",
        "def lengths_only(rewards, group_size, lengths, *, power: float):\n"
        "    from evenkeel.trainer.algorithms.advantages import dr_grpo\n"
        "    return dr_grpo(rewards, group_size) * lengths**power\n",
    )
    part = build(ADVANTAGE, {"name": "part_with_inputs:lengths_only", "power": 2.0})
    assert part.signals == {"rewards", "group_size", "lengths"}
    given = {"rewards": torch.tensor([0.0, 1.0]), "group_size": 2, "lengths": torch.tensor([1, 3])}
    assert part({**given, "mask": "not asked for"}).tolist() == [-0.5, 4.5]


def test_what_is_no_function_is_refused():
    refused(ADVANTAGE, "evenkeel.trainer.algorithms.groups:GROUP_STD_EPSILON", "not-a-function", "float")


@pytest.mark.parametrize(
    ("source", "code", "values"),
    [
        ("def part(group_size, lengths): ...", "missing-signal", ["take rewards"]),
        ("class part:\n    def __call__(self, rewards): ...", "state-not-saved", ["without state_dict"]),
        ("def part(rewards, group_size, **options): ...", "unnamed-arguments", ["*options", "completion_ids"]),
    ],
)
def test_a_wrong_signature_is_refused(packages, source, code, values, request):
    module = re.sub(r"\W", "_", request.node.name)
    write_module(packages, module, source)
    refused(ADVANTAGE, f"{module}:part", code, *values)


def fails(rewards, group_size):
    raise RuntimeError("out of ideas")


@pytest.mark.parametrize(
    ("function", "fragments"),
    [
        (lambda rewards: rewards.nan_to_num() * 0.0, ["response 2 with reward nan has the advantage 0"]),
        (lambda rewards: torch.where(rewards == 1.0, torch.inf, dr_grpo(rewards, 4)), ["has the advantage inf"]),
        (lambda rewards, group_size: rewards[:group_size], ["it returned (4,)", "(12,) or (12, 6)"]),
        (lambda rewards: rewards.tolist(), ["it returned list"]),
        (fails, ["failed on a tiny example: RuntimeError: out of ideas"]),
    ],
)
def test_an_estimator_that_breaks_its_contract_is_refused(function, fragments):
    refused(ADVANTAGE, function, "part", f"advantage {function.__name__!r}", *fragments)


SCHEDULES = """
    from evenkeel.trainer.algorithms.update_schedules import UpdateSchedule

    def everything_twice() -> UpdateSchedule:
        return UpdateSchedule(2, lambda probs, mask, pass_index: mask.bool())

    def padding_too() -> UpdateSchedule:
        return UpdateSchedule(1, lambda probs, mask, pass_index: mask >= 0)

    def select_fails() -> UpdateSchedule:
        return UpdateSchedule(1, lambda probs: probs)
"""


@pytest.mark.parametrize(
    ("name", "fragment"),
    [
        ("everything_twice", "exactly once"),
        ("padding_too", "exactly once"),
        ("select_fails", "failed on a tiny example: TypeError"),
    ],
)
def test_a_schedule_that_does_not_partition_the_mask_is_refused(packages, name, fragment):
    write_module(packages, f"schedules_{name}", SCHEDULES)
    refused(UPDATE_SCHEDULE, f"schedules_{name}:{name}", "part", fragment)

"""The trial on verifiers that change, forget, crash or exaggerate, and on honest ones (`fresh`)."""

import re
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.rewards import build_verifier
from evenkeel.rewards.references import check_rewards
from tests.rewards.user_verifiers import ends, fresh

REFERENCES = [f"word{number}" for number in range(3)]


def refusal(spec: Any) -> str:
    """What the trial says; empty where it has nothing to say."""
    try:
        check_rewards({"mine": build_verifier(spec)}, {"mine": None}, REFERENCES, None, "data.train")
    except Refusal as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", fresh.VERDICTS)
def test_one_whose_verdicts_are_none_is_named(name: str) -> None:
    judge, said = fresh.VERDICTS[name]
    assert re.search(said, found := refusal(judge)), found


@pytest.mark.parametrize("name", fresh.HONEST)
def test_an_honest_one_is_left_alone(name: str) -> None:
    assert refusal(fresh.HONEST[name]) == ""


FAST_ENDS = ("a null pointer",)


@pytest.mark.parametrize(
    "act", [name if name in FAST_ENDS else pytest.param(name, marks=pytest.mark.slow) for name in ends.ENDS]
)
def test_a_crash_is_answered_by_its_cause(act: str) -> None:
    found = refusal({"name": "tests.rewards.user_verifiers.ends:process", "act": act})
    assert re.search(ends.ENDS[act][1], found, re.DOTALL), found
    assert "Make it faster" not in found

"""The trial on verifiers that change the process, forget, crash or exaggerate, and on honest ones (`fresh`)."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from evenkeel.rewards import build_verifier
from evenkeel.rewards.references import UnusableVerifierError, check_rewards
from evenkeel.rewards.user_verifiers import bounded
from evenkeel.rewards.user_verifiers.process_state import ASPECTS
from tests.rewards.user_verifiers import ends, fresh

REFERENCES = [f"word{number}" for number in range(3)]


def refusal(spec: Any) -> str:
    """What the trial says; empty where it has nothing to say."""
    try:
        check_rewards({"mine": build_verifier(spec)}, {"mine": None}, REFERENCES, None, "data.train")
    except UnusableVerifierError as error:
        return str(error)
    return ""


def shared() -> dict[str, Any]:
    return {name: value for aspect in ASPECTS for name, value in aspect.read().items()}


@pytest.mark.parametrize("change", fresh.CHANGES)
def test_one_that_changes_the_process_is_named_and_the_process_is_as_before(change: str) -> None:
    act, said = fresh.CHANGES[change]
    before, numbers = shared(), [os.fstat(number).st_ino for number in range(3)]
    found = refusal(fresh.after(act))
    assert [os.fstat(number).st_ino for number in range(3)] == numbers
    assert {name: value for name, value in shared().items() if before.get(name) != value} == {}
    assert re.search(f"changes [^.]*{said}.* at each call", found), found


def test_in_a_run_it_is_put_back_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    verifier = bounded(build_verifier(fresh.after(lambda: os.chdir("/"))))
    here = str(Path.cwd())
    for _ in range(2):
        assert [verdict.score for verdict in verifier.judge_all(["so 5", "so 6"], ["5", "5"])] == [1.0, 0.0]
        assert str(Path.cwd()) == here
    assert caplog.text.count(f"changed the working directory ({here!r} → '/'), which is the whole process's") == 1


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

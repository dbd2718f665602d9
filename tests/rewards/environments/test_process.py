"""Objects in a process: what they say is what they say here; what ends the process costs rows and no run."""

import inspect
import json
import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from evenkeel.rewards.environments import build_environment, by_turn, user_objects
from tests.rewards.environments import parts
from tests.rewards.isolation.sandbox.processes import all_gone

PARTS = "tests.rewards.environments.parts"


def made(name: str = "Counting", **options: Any) -> Any:
    environment = build_environment({"name": f"{PARTS}:{name}", **options})()
    environment.reset()
    return environment


def said(environment: Any, call: Callable[[Any], Any]) -> tuple[str, str | None]:
    """What a policy reads of a call, and why the row is unscored."""
    try:
        return call(environment), environment.failure
    except Exception as error:  # noqa: BLE001 — any
        return str(error), environment.failure


CALLS: list[Callable[[Any], Any]] = [
    lambda diary: diary.write("a"),
    lambda diary: diary.write(text=""),
    lambda diary: diary.write(txt="a"),
    lambda diary: diary.wait(0.001),
    lambda diary: diary.leave(),
    lambda diary: diary.lose(),
    lambda diary: diary.write("b"),
    lambda diary: str(diary.reset(greeting="hello")),
    lambda diary: diary.write("c"),
    lambda diary: str(diary._asked("get_reward")),
    lambda diary: str(diary.reset(reference="away")),
]


def test_it_says_what_it_says_where_no_process_can_import_it():
    class Local(parts.Diary):
        def get_reward(self) -> float | None:
            return super().get_reward()

    here: Any = build_environment({"name": Local, "paid": 0.25})()
    here.reset()
    there = made("Diary", paid=0.25)
    assert [each._hosts[""].has_process for each in (here, there)] == [False, True]
    assert inspect.signature(there.write) == inspect.signature(here.write)
    assert there.write.__doc__ == parts.Diary.write.__doc__
    heard = [said(there, call) for call in CALLS]
    assert heard == [said(here, call) for call in CALLS]
    assert [failure for _, failure in heard].count(None) == 8
    assert there.calls == here.calls
    turn = {"role": "assistant", "tool_calls": [{"function": {"name": "write"}}]}
    assert by_turn([there], [[turn, turn]]) == by_turn([here], [[turn, turn]])


def test_a_call_that_holds_the_interpreter_ends_the_process_and_its_rows_and_the_next_rows_have_another(monkeypatch):
    monkeypatch.setattr(user_objects, "SECONDS_TO_ANSWER", 0.5)
    kind = build_environment({"name": f"{PARTS}:Unruly", "time_limit_s": 0.5})
    one, other = kind(), kind()
    for each in (one, other):
        each.reset()
    pids = json.loads(one.processes())
    assert pids[0] == json.loads(other.processes())[0], "one process for all rows"
    assert os.getpid() not in pids
    with pytest.raises(RuntimeError):
        one.hang()
    assert one.failure == "hang failed: TimeoutError: no answer within time_limit_s = 0.5"
    assert all_gone(pids, within_seconds=20)
    with pytest.raises(RuntimeError):
        other.count()
    assert "its object was lost with its process" in str(other.failure)
    for each in (one, other):
        each.reset()
        assert each.failure is None
        assert json.loads(each.processes())[0] not in pids


def test_an_object_is_reset_for_its_next_row_and_draws_from_the_stream_of_the_run():
    heard = []
    for _ in range(2):
        random.seed(7)
        environment = made()
        first = environment.count()
        environment.reset()
        heard.append((first, environment.count()))
    assert heard[0] == heard[1]
    assert [text.split(",")[0] for text in heard[0]] == ["row 1", "row 2"]
    assert len({text.split(",")[1] for text in heard[0]}) == 2

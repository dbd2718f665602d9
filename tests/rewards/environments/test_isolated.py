"""An object in a process of its own: what it says is what it says in a thread, and nothing of it is left."""

import inspect
import json
import os
import random
import threading
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from evenkeel.rewards.environments import EnvironmentPartError, build_environment, by_turn, trial_problem
from tests.rewards.environments import parts

PARTS = "tests.rewards.environments.parts"


def made(name: str = "Counting", **options: Any) -> Any:
    environment = build_environment({"name": f"{PARTS}:{name}", "isolated": True, **options})()
    environment.reset()
    return environment


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: list[int]) -> bool:
    """Whether the processes end; the kernel takes its time."""
    deadline = time.monotonic() + 20
    while any(map(lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(lives, pids))


def said(environment: Any, call: Callable[[Any], Any]) -> tuple[str, str | None]:
    """What a policy reads of a call, and why the row is unjudged."""
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


def test_it_says_what_it_says_in_a_thread():
    in_thread: Any = build_environment({"name": f"{PARTS}:Diary", "paid": 0.25})()
    in_thread.reset()
    in_process = made("Diary", paid=0.25)
    assert inspect.signature(in_process.write) == inspect.signature(in_thread.write)
    assert in_process.write.__doc__ == parts.Diary.write.__doc__
    heard = [said(in_process, call) for call in CALLS]
    assert heard == [said(in_thread, call) for call in CALLS]
    assert [failure for _, failure in heard].count(None) == 8
    assert in_process.calls == in_thread.calls
    turn = {"role": "assistant", "tool_calls": [{"function": {"name": "write"}}]}
    assert by_turn([in_process], [[turn, turn]]) == by_turn([in_thread], [[turn, turn]])


def test_a_call_that_never_returns_is_ended_with_all_that_it_started_and_keeps_no_thread():
    environment = made("Unruly", time_limit_s=1.0)
    pids = json.loads(environment.processes())
    assert all(map(lives, pids))
    assert os.getpid() not in pids
    with pytest.raises(TimeoutError):
        environment.hang()
    assert environment.failure == "hang failed: TimeoutError: no answer within time_limit_s = 1"
    assert gone(pids)
    assert "environment" not in [thread.name for thread in threading.enumerate()]
    environment.reset()
    assert environment.failure is None
    pid, child = json.loads(environment.processes())
    assert pid not in pids
    del environment
    assert gone([pid, child]), "an environment that nobody has any more leaves nothing"


def test_a_crash_and_a_swelling_call_cost_their_row_alone():
    environment = made("Unruly", memory_mb=300)
    for method, failure in (
        (environment.crash, "crash failed: UnavailableError: its process ended with exit code 3, as by os._exit(3)"),
        (environment.swell, "swell failed: MemoryError: it took more than memory_mb = 300 of its process"),
    ):
        environment.reset()
        with pytest.raises((RuntimeError, MemoryError)):
            method()
        assert environment.failure == failure
    environment.reset()
    assert environment.count().startswith("row 1, ")


@pytest.mark.parametrize("isolated", [False, True])
def test_an_object_is_reset_for_its_next_row_or_made_anew(isolated: bool):
    for new, rows in ((False, [1, 2]), (True, [1, 1])):
        environment = made(isolated=isolated, new_for_each_row=new)
        assert type(environment).resets_objects is not new
        heard = [environment.count()]
        environment.reset()
        assert [text.split(",")[0] for text in (*heard, environment.count())] == [f"row {row}" for row in rows]


def test_what_it_draws_comes_from_the_stream_of_the_run():
    heard = []
    for _ in range(2):
        random.seed(7)
        environment = made()
        first = environment.count()
        environment.reset()
        heard.append((first, environment.count()))
    assert heard[0] == heard[1]
    assert len({text.split(",")[1] for text in heard[0]}) == 2


def test_what_cannot_start_is_said_before_a_run():
    problem = trial_problem(build_environment({"name": f"{PARTS}:Unmade", "isolated": True}), {"data.train": [{}]})
    assert "row 0: reset failed: UnavailableError: its process cannot start: ValueError: no server" in problem


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": f"{PARTS}:Counting", "isolated": "yes"}, "isolated = 'yes' is not true or false"),
        ({"name": f"{PARTS}:Counting", "new_for_each_row": 1}, "new_for_each_row = 1 is not true or false"),
        ({"name": f"{PARTS}:Counting", "isolated": True, "memory_mb": 0}, "memory_mb = 0 is not a whole number"),
        ({"name": f"{PARTS}:Counting", "memory_mb": 100}, "memory_mb"),
        ({"name": f"{PARTS}:counting", "isolated": True}, "is not a class of a module"),
        ({"name": f"{PARTS}:Unmade", "isolated": True, "since": date(2026, 1, 1)}, "since = .* is not of JSON"),
    ],
)
def test_what_cannot_be_isolated_is_refused(spec: Any, message: str):
    with pytest.raises(EnvironmentPartError, match=message):
        build_environment(spec)

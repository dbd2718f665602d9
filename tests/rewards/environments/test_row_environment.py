"""No call of an environment holds a run, nor ends it; what failed costs its row; what happened is known by turns."""

import asyncio
import contextlib
import inspect
import json
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests

from evenkeel.rewards import build_verifier
from evenkeel.rewards.environments import (
    RowEnvironment,
    UnavailableError,
    build_environment,
    by_turn,
    has_reward,
    trial_problem,
    user_objects,
)
from evenkeel.rewards.environments.user_objects import is_failure
from evenkeel.rewards.registry import PartError
from evenkeel.rewards.reward_function import reward_functions
from tests.rewards.environments import parts
from tests.rewards.isolation.sandbox.processes import all_gone
from tests.rewards.test_reward_function import Logs, batch

PARTS = "tests.rewards.environments.parts"


@pytest.fixture(params=["in a process", "here"])
def diary(request: pytest.FixtureRequest) -> RowEnvironment:
    """A class that a process can import, and one that none can."""

    class Local(parts.Diary): ...

    name = Local if request.param == "here" else f"{PARTS}:Diary"
    made = build_environment({"name": name, "time_limit_s": 1.0})()
    assert made._hosts[""].has_process == (request.param != "here")
    made.reset()
    return made


def test_tools_are_the_public_methods_with_the_users_signatures(diary: Any):
    public = {name for name, _ in inspect.getmembers(type(diary), inspect.isfunction) if not name.startswith("_")}
    assert public == {"leave", "lose", "reset", "wait", "write"}
    assert has_reward(type(diary))
    assert str(inspect.signature(diary.write)) == "(text: str) -> str"
    assert diary.write("a") == "1 lines"
    assert diary.write(text="b") == "2 lines"
    assert diary.wait(0.001) == "waited"

    async def notebook() -> Any:
        return diary.wait(0.001)

    assert asyncio.run(notebook()) == "waited"


def test_what_a_tool_refuses_is_raised_for_the_policy_to_read(diary: Any):
    with pytest.raises(ValueError, match="nothing to write"):
        diary.write("")
    with pytest.raises(ValueError, match="unexpected keyword argument 'txt'"):
        diary.write(txt="a")
    with pytest.raises(ValueError, match="SystemExit: enough"):
        diary.leave()
    assert diary.failure is None
    assert diary.write("a") == "1 lines"


def test_a_hanging_tool_costs_its_limit_once_and_the_next_row_has_a_new_object():
    made: Any = build_environment({"name": f"{PARTS}:Unruly", "time_limit_s": 0.5})()
    made.reset()
    pid = json.loads(made.processes())[0]
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"within time_limit_s = 0\.5"):
        made.sleep()
    for _ in range(20):
        with pytest.raises(UnavailableError, match="not available any more"):
            made.sleep()
    assert time.monotonic() - started < 10 * 0.5
    assert made.failure == "sleep failed: TimeoutError: no answer within time_limit_s = 0.5"
    made.reset()
    assert made.count().startswith("row 1, ")
    assert json.loads(made.processes())[0] == pid, "a thread that sleeps is left behind, and the process goes on"


def test_a_lost_connection_and_a_reset_that_fails_are_failures_and_end_no_run(diary: Any):
    with pytest.raises(UnavailableError):
        diary.lose()
    assert diary.failure == "lose failed: ConnectionResetError: the server has gone"
    assert diary.reset(greeting="hello") == "hello"
    assert diary.reset(reference="away") is None
    assert diary.failure == "reset failed: ConnectionError: the diary's server is away"


def test_the_environments_reward_joins_the_verdicts_and_a_failure_leaves_the_row_unscored():
    kind = build_environment({"name": f"{PARTS}:Diary", "paid": 0.5})
    environments: list[Any] = [kind() for _ in range(4)]
    for environment in environments:
        environment.reset()
    environments[0].write("a")
    for text in "ab":
        environments[1].write(text)
    with pytest.raises(UnavailableError):
        environments[2].lose()
    functions = reward_functions({"own": build_verifier("environment"), "exact": build_verifier("exact_match")})
    logs = Logs()
    answers = [[{"role": "assistant", "content": "7"}]] * 4
    calls = batch(*answers, reference=["7", "7", "7", "8"], environments=environments, **logs.hooks)
    own, exact = (function(**calls) for function in functions)
    assert own == [0.5, 1.0, None, None]
    assert exact == [1.0, 1.0, None, None]  # where one cannot judge nothing is scored
    assert logs.columns["correct"] == [False, True, None, None]
    failure = "lose failed: ConnectionResetError: the server has gone"
    assert logs.columns["environment/failure"] == [None, None, failure, None]
    assert logs.metrics["environment/frac_failed"] == [0.0, 0.0, 1.0, 0.0]
    assert logs.metrics["environment/calls"] == [1.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize("hangs", [False, True])
def test_an_object_that_cannot_be_made_costs_its_row_and_no_run(hangs: bool):
    """The class makes two objects in its process."""
    kind = build_environment({"name": f"{PARTS}:Few", "hangs": hangs, "time_limit_s": 0.5})
    environments = [kind() for _ in range(3)]
    for environment in environments:
        environment.reset()
    said = "TimeoutError: no answer within time_limit_s = 0.5" if hangs else "ConnectionError: no session is left"
    assert [environment.failure for environment in environments] == [None, None, f"reset failed: {said}"]


def test_a_policy_reads_text_alone():
    made: Any = build_environment(f"{PARTS}:Parts")()
    made.reset()
    assert [made.say(answer) for answer in (["a", 1], [], 3, None, {3})] == ["['a', 1]", "[]", "3", "None", "{3}"]
    with pytest.raises(ValueError, match="1,048,577 characters"):
        made.say("x" * 1_048_577)
    assert (str(inspect.signature(made.twice)), made.twice("a")) == ("(text: str) -> str", "aa")
    assert (made.again.__name__, made.again("a")) == ("again", "a")
    assert made.failure is None
    with pytest.raises(UnavailableError, match="parts of a chat"):
        made.say([{"type": "image", "image": "a.png"}])
    assert made.reset(begins=[1]) is None
    assert made.failure.startswith("reset failed: TypeError: it returned [1]")


def test_calls_are_counted_to_the_turns_that_made_them(diary: Any):
    def turn(*names: str) -> dict[str, Any]:
        calls = [{"type": "function", "function": {"name": name, "arguments": {}}} for name in names]
        return {"role": "assistant", "content": "", "tool_calls": calls}

    tool = {"role": "tool", "name": "write", "content": ""}
    diary.write("a")
    diary.write("b")
    with pytest.raises(ValueError, match="nothing"):
        diary.write("")
    messages = [turn("write", "unknown", "write"), tool, tool, tool, turn("write"), tool, turn()]
    columns = by_turn([diary], [messages])
    assert columns == {"turn_rewards": [[1.0, 0.5, 0]], "state_keys": [["", "a b", "a b"]]}
    assert by_turn([build_environment(f"{PARTS}:Silent")()], [[turn()]]) == {}


@pytest.mark.parametrize(
    ("method", "call", "said"),
    [
        ("state", lambda self: {}["nowhere"], "KeyError: 'nowhere'"),
        ("turn_reward", lambda self: {}["nowhere"], "KeyError: 'nowhere'"),
        ("turn_reward", lambda self: float("nan"), "ValueError: it returned nan. Return a number."),
    ],
)
def test_a_state_or_a_reward_of_a_turn_that_cannot_be_had_fails_its_row_alone(method: str, call: Any, said: str):
    made: Any = build_environment(type("Broken", (parts.Diary,), {method: call}))()
    made.reset()
    with contextlib.suppress(UnavailableError):
        made.write("a")
    assert made.failure == f"{method} failed: {said}"
    with pytest.raises(UnavailableError):
        made.write("b")
    assert by_turn([made], [[{"role": "assistant", "content": "no call"}]])["turn_rewards"] == [[0]]


@pytest.mark.parametrize(
    ("spec", "tools", "said"),
    [
        ("gessing", [], "Did you mean guessing?"),
        ({"name": "guessing", "largest": "3"}, [], "largest = '3' is not accepted"),
        ({"name": "guessing", "time_limit_s": 0}, [], "time_limit_s = 0 is not accepted"),
        (f"{PARTS}:never_called", [], "is not a class with a method reset"),
        (None, ["calculator", "calculator"], "two tools"),
        (None, ["calculater"], "Did you mean calculator?"),
        (type("Loud", (parts.Silent,), {"shout": parts.shout}), [f"{PARTS}:shout"], "two tools"),
    ],
)
def test_a_part_that_cannot_be_is_refused_with_what_to_write(spec: Any, tools: list[Any], said: str):
    with pytest.raises(PartError, match=said.replace("?", r"\?")):
        build_environment(spec, tools)


def test_a_trial_finds_what_would_cost_a_run():
    diary = build_environment({"name": f"{PARTS}:Diary", "time_limit_s": 0.5})
    away = trial_problem(diary, {"data.train": [{}], "data.test": [{}, {"reference": "away"}]})
    assert "data.test: environment Diary, row 1: reset failed: ConnectionError" in away
    assert trial_problem(build_environment("guessing"), {"data.train": [{"reference": 3}] * 20}) == ""
    assert trial_problem(build_environment(f"{PARTS}:Silent", ["calculator"]), {"data.train": [{}]}) == ""


def test_a_tool_runs_in_a_process_of_its_own():
    made: Any = build_environment(None, [f"{PARTS}:shout", "calculator"])()
    made.reset()
    assert str(inspect.signature(made.shout)) == "(text: str) -> str"
    assert made.shout("a") == "A"
    with pytest.raises(ValueError, match="I will not shout that"):
        made.shout("refuse")
    assert made.failure is None
    with pytest.raises(ValueError, match="it raised SystemExit: enough"):
        made.shout("leave")
    assert made.calculator("(1 + 2) * 3") == "9"
    with pytest.raises(UnavailableError):
        made.shout("away")
    assert made.failure == "shout failed: ConnectionResetError: the server has gone"


def test_ctrl_c_is_the_trainers_also_in_a_tool():
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    made: Any = build_environment(type("Local", (parts.Silent,), {"wait": interrupted}))()
    made.reset()
    with pytest.raises(KeyboardInterrupt):
        made.wait()


def made(name: str = "Counting", **options: Any) -> Any:
    environment = build_environment({"name": f"{PARTS}:{name}", **options})()
    environment.reset()
    return environment


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


NOWHERE = "http://127.0.0.1:9"


def closed() -> None:
    raise type("ConnectionClosedError", (Exception,), {})("as websockets raises it")


def status() -> None:
    raise urllib.error.HTTPError(NOWHERE, 422, "no such move", None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "failed"),
    [
        (lambda: httpx.get(NOWHERE, trust_env=False), True),
        (lambda: requests.get(NOWHERE, timeout=5, proxies={"http": ""}), True),
        (lambda: urllib.request.build_opener(urllib.request.ProxyHandler({})).open(NOWHERE), True),
        (closed, True),
        (status, False),
        (lambda: int("a"), False),
        (lambda: open("/no/such/file"), False),  # noqa: PTH123, SIM115
    ],
)
def test_a_connection_that_fails_is_told_from_a_refusal(call: Callable[[], Any], failed: bool):
    with pytest.raises(Exception, match=r".") as caught:
        call()
    assert is_failure(caught.value) is failed

"""Objects in a process: what ends it costs rows and no run; a connection that fails is told from a refusal."""

import json
import os
import random
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests

from evenkeel.rewards.environments import build_environment, user_objects
from evenkeel.rewards.environments.user_objects import is_failure
from tests.rewards.isolation.sandbox.processes import all_gone

PARTS = "tests.rewards.environments.parts"


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


class ClosedError(Exception):
    """As `websockets.exceptions.ConnectionClosed`, which need not be installed."""

    __module__, __qualname__ = "websockets.exceptions", "ConnectionClosed"


def closed() -> None:
    raise type("ConnectionClosedError", (ClosedError,), {})("no close frame received or sent")


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

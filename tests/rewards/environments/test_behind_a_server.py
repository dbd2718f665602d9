"""Environments behind a server: one for TRL's `environment_factory` fits as it is; a killed server blames no one."""

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import requests

from evenkeel.rewards import build_verifier
from evenkeel.rewards.environments import UnavailableError, build_environment, has_reward, trial_problem
from evenkeel.rewards.environments.user_objects import is_failure
from evenkeel.rewards.verifiers.environment import EnvironmentReward
from tests.rewards.environments import numbers_behind_a_server

NOWHERE = "http://127.0.0.1:9"


@contextmanager
def server(port: int = 0) -> Iterator[int]:
    command = [sys.executable, numbers_behind_a_server.__file__, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def paid(environment: Any) -> float | None:
    verifier = build_verifier("environment")
    assert isinstance(verifier, EnvironmentReward)
    return verifier.of([environment])[0].score


def test_rows_are_unscored_while_a_server_is_away_and_scored_when_it_is_back():
    with server() as port:
        part = {"name": f"{numbers_behind_a_server.__name__}:Remote", "url": f"http://127.0.0.1:{port}"}
        kind = build_environment(part)
        assert has_reward(kind)
        assert trial_problem(kind, {"data.train": [{"reference": 3}]}) == ""
        environment: Any = kind()
        environment.reset(reference=3, prompt="Guess.")
        assert paid(environment) is None
        assert (environment.guess(2), paid(environment)) == ("wrong", 0.0)
        assert (environment.guess(number=3), paid(environment)) == ("right", 1.0)
    with pytest.raises(UnavailableError):
        environment.guess(2)
    assert environment.failure.startswith("guess failed: ")
    assert paid(environment) is None
    environment.reset(reference=3)
    assert "refused" in environment.failure
    with server(port):
        environment.reset(reference=2)
        assert (environment.guess(2), paid(environment), environment.failure) == ("right", 1.0, None)
    with server(port):  # the connection has ended between two rows
        environment.reset(reference=4)
        assert (environment.guess(4), paid(environment), environment.failure) == ("right", 1.0, None)


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

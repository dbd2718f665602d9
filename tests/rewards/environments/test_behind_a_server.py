"""What a client of an environment's server raises: a connection that fails is no refusal."""

import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests

from evenkeel.rewards.environments.user_objects import is_failure

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

"""Where the object of a row's environment lives: here, each call in a thread, or in a worker process of its own."""

import asyncio
import inspect
import itertools
import json
import pkgutil
import random
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evenkeel.rewards.isolation.workers import WorkerPool, WorkerResult, WorkerStartError


class UnavailableError(RuntimeError):
    """What a tool depends on is away: a server, a file system. The row is then unjudged, its policy is not blamed."""


FAILURES = (UnavailableError, TimeoutError, ConnectionError, MemoryError)
"""What a tool raises where it failed, and not the policy that called it; all else is text for the policy."""
_FAILURES_OF_CLIENTS = frozenset(
    {
        "aiohttp.client_exceptions.ClientConnectionError",
        "httpx.TransportError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "urllib.error.URLError",
        "websockets.exceptions.ConnectionClosed",
        "websockets.exceptions.InvalidHandshake",
    }
)
"""The same of libraries whose errors are none of `FAILURES`: no answer came. They need not be installed."""


def is_failure(error: BaseException) -> bool:
    """Whether ``error`` says that a tool failed, and not that it refuses; an HTTP status is an answer."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    of_client = not names.isdisjoint(_FAILURES_OF_CLIENTS) and "urllib.error.HTTPError" not in names
    return isinstance(error, FAILURES) or of_client


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "state": str,
    "turn_reward": float,
    "get_reward": lambda reward: None if reward is None else float(reward),
}
"""Of the methods that no policy calls: what they return."""


def _returned(call: Callable[[], Any]) -> Any:
    """What a user's code returns; a coroutine is run, and ``sys.exit`` ends no run."""
    try:
        result = call()
        return asyncio.run(result) if inspect.iscoroutine(result) else result
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it raised {type(error).__name__}: {error}") from error


class UserObject:
    """A user's object, reset for each row, as TRL does, or made anew for it, and after a failure: one that lost its
    connection would fail for good."""

    def __init__(self, make: Callable[[], Any], *, new_for_each_row: bool) -> None:
        self._make, self._new_for_each_row = make, new_for_each_row
        self.inner = make()
        self._is_used = self._has_failed = False

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """What a method returns or raises.

        ``get_reward`` of an object without that method is its attribute ``reward``. A ``reset`` that fails with an
        object of an earlier row, whose connection may have ended meanwhile, is tried again with a new one.
        """
        is_old = False
        try:
            if method == "reset":
                is_old = self._is_used and not self._has_failed and not self._new_for_each_row
                if self._is_used and not is_old:
                    self.inner, self._has_failed = _returned(self._make), False
                self._is_used = True
            is_attribute = method == "get_reward" and not hasattr(self.inner, method)
            result = _returned(lambda: self.inner.reward if is_attribute else getattr(self.inner, method)(**arguments))
            return _KINDS[method](result) if method in _KINDS else result
        except Exception as error:
            self._has_failed |= method == "reset" or is_failure(error)
            if is_old and is_failure(error):
                return self.call(method, arguments)
            raise


def within(time_limit_s: float, call: Callable[[], Any]) -> Any:
    """What ``call`` returns or raises, in a thread; one that takes too long is left behind, for it cannot be ended."""
    outcome = dict[str, Any]()

    def run() -> None:
        try:
            outcome["result"] = _returned(call)
        except BaseException as error:  # noqa: BLE001 — raised below, in the caller's thread
            outcome["error"] = error

    thread = threading.Thread(target=run, name="environment", daemon=True)
    thread.start()
    thread.join(time_limit_s)
    if thread.is_alive():
        raise _too_late(time_limit_s)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


class InThread:
    """In this process, made with the first call. With a call that takes too long its object is left behind."""

    def __init__(self, make: Callable[[], UserObject], time_limit_s: float) -> None:
        self._make, self._time_limit_s = make, time_limit_s
        self.object: UserObject | None = None

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """What a method returns or raises within the limit."""
        held = self.object

        def called() -> Any:
            nonlocal held
            if held is None:
                held = self._make()
            return held.call(method, arguments)

        self.object = None  # after a call that takes too long: its thread goes on with the object
        try:
            result = within(self._time_limit_s, called)
        except TimeoutError:
            raise
        except Exception:
            self.object = held
            raise
        self.object = held
        return result


class InProcess:
    """In a worker process, which is ended at its limits; the next call starts another, with an object of its own.

    It starts when this object is made, which does not wait for it, and ends with this object. What is said goes through
    JSON both ways. An answer that JSON has no name for is its ``str``, as TRL makes of it.

    Args:
        path: ``package.module:Class``.
        options: that it is made with.
    """

    _numbers = itertools.count()

    def __init__(
        self, path: str, options: Mapping[str, Any], time_limit_s: float, memory_mb: int, *, new_for_each_row: bool
    ) -> None:
        made = {"path": path, "options": options, "new_for_each_row": new_for_each_row}
        self._time_limit_s, self._memory_mb = time_limit_s, memory_mb
        self._pool = WorkerPool(
            f"{__name__}:served",
            json.dumps({**made, "number": next(self._numbers)}),  # equal pools would share a process
            cpu_seconds=0.0,
            wall_seconds=time_limit_s,
            memory_bytes=memory_mb << 20,
            workers=1,
            users=True,
        )
        self._pool.start()
        weakref.finalize(self, self._pool.close).atexit = False  # the pool's own end comes then

    def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """What a method returns or raises within the limits."""
        item: dict[str, Any] = {"method": method, "arguments": {**arguments}}
        if method == "reset":  # the process has no stream of the run's own, which a checkpoint restores
            item["seed"] = random.getrandbits(32)
        (found,) = asked(self._pool, [item])
        if found.killed:
            self._pool.start()
        return result_of(found, self._time_limit_s, self._memory_mb)


def served(argument: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """In the process: the object that ``argument`` describes, as a function of calls."""
    given = json.loads(argument)
    make = partial(pkgutil.resolve_name(given["path"]), **given["options"])
    user_object = UserObject(make, new_for_each_row=given["new_for_each_row"])

    def serve(call: Mapping[str, Any]) -> dict[str, Any]:
        if "seed" in call:
            random.seed(call["seed"])
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(call["seed"])
        return answer_of(lambda: user_object.call(call["method"], call["arguments"]))

    return serve


def answer_of(call: Callable[[], Any]) -> dict[str, Any]:
    """In a worker: what a call returned or raised, for `result_of`. A ``MemoryError`` is the worker's own to say."""
    try:
        result = _returned(call)
        return {"result": result if isinstance(result, str | float | list | None) else str(result)}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 — read by the policy
        said = [type(error).__name__, str(error) or type(error).__name__]
        return {"failed" if is_failure(error) else "refused": said}


def asked(pool: WorkerPool, items: Sequence[Any]) -> list[WorkerResult]:
    """What workers of users' code make of ``items``; of none where they cannot start, which `result_of` says."""
    try:
        return pool.map(items)
    except WorkerStartError as error:
        why = f"its process cannot start: {str(error).strip().splitlines()[-1]}"
        return [WorkerResult(None, "raised", detail=why) for _ in items]


def result_of(found: WorkerResult, time_limit_s: float, memory_mb: int) -> Any:
    """What the call in the worker returned.

    Raises:
        TimeoutError, MemoryError: the worker was ended at that limit.
        UnavailableError: it ended otherwise, or the call failed (`FAILURES`); then of a class with the name of the one
            that was raised there.
        ValueError: it raised something else; the same.
    """
    if found.status == "wall_limit":
        raise _too_late(time_limit_s)
    if found.status == "memory_limit":
        raise MemoryError(f"it took more than memory_mb = {memory_mb} of its process")
    if not found.done:
        raise UnavailableError(f"its process ended {found.detail}" if found.killed else found.detail)
    for key, base in (("failed", UnavailableError), ("refused", ValueError)):
        if key in found.value:
            name, text = map(str, found.value[key])
            raise type(name, (base,), {})(text)
    return found.value["result"]


def _too_late(time_limit_s: float) -> TimeoutError:
    return TimeoutError(f"no answer within time_limit_s = {time_limit_s:g}")

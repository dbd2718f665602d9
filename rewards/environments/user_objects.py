"""Users' objects and tools in a process of their own, and calls of them."""

import asyncio
import inspect
import math
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any
from urllib.error import HTTPError

from evenkeel.rewards.isolation.workers.user_part import UserPart


class UnavailableError(RuntimeError):
    """A tool's dependency, such as a server or file system, is unavailable. The row is unscored, not wrong."""


_FAILURES = re.compile("Connection|Timeout|Transport|Handshake|Unavailable|MemoryError|URLError")
"""In class names of errors (also of httpx, requests, aiohttp, urllib, websockets) if the tool failed, not the call."""
CALLS_AT_ONCE = 16
"""Threads of the process, each for a call of another row."""
SECONDS_TO_ANSWER = 5.0
"""Seconds after the time limit of its calls at which a process is killed: a call then holds the interpreter."""

MOST_CHARACTERS = 1 << 20
"""Of an answer: no completion holds more, and as JSON it is shorter than the longest message of a process."""

Asked = tuple[int, str, Mapping[str, Any]]
"""The number of a row, a method and its arguments."""
Answer = Mapping[str, Any]
"""``result``; or class and text of an exception: ``failed`` (the tool) or ``refused`` (the policy reads it)."""


def is_failure(error: BaseException) -> bool:
    """True if ``error`` means that a tool failed, not that it refuses a call; an HTTP status is an answer."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return not isinstance(error, HTTPError) and any(map(_FAILURES.search, names))


class Host:
    """The process of an environment's objects or of a tool; this process, if it cannot be imported in another.

    Args:
        part: the objects, or the tool.
        time_limit_s: per call. Without a process there is no limit, and calls are made one after another.
    """

    def __init__(self, part: "Objects", time_limit_s: float) -> None:
        self._part = UserPart(partial(_answers, part))
        self._time_limit_s = time_limit_s

    @property
    def has_process(self) -> bool:
        """True if calls are made in another process."""
        return self._part.pool is not None

    def answers(self, calls: Sequence[Asked]) -> list[Answer]:
        """Make calls of different rows; answers in their order."""
        limit = self._time_limit_s if self.has_process else None
        # The process gets its random seeds from this one's stream, which a checkpoint restores.
        seeds = [random.getrandbits(32) if limit and method == "reset" else None for _, method, _ in calls]
        seconds = self._time_limit_s * -(-len(calls) // CALLS_AT_ONCE) + SECONDS_TO_ANSWER
        found: dict[int, Answer] = {}
        item = list(zip(calls, seeds, strict=True)), limit
        result = self._part.call(item, seconds, lambda answer: found.update([answer]))
        lost = ["UnavailableError", f"its process ended {result.detail}" if result.killed else result.detail]
        if result.status == "wall_limit":
            lost = _too_late(self._time_limit_s)
        return [found.get(number, {"failed": lost}) for number in range(len(calls))]


class Objects:
    """Users' objects, one for each row of a batch, reset for the next batch, as TRL does.

    After a failure a new object is made: one that lost its connection would keep failing. A ``reset`` that fails with
    an object of an earlier row, whose connection may have ended meanwhile, is tried again with a new object.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._objects: dict[int, Any] = {}

    def call(self, row: int, method: str, arguments: Mapping[str, Any]) -> Any:
        """A method's result; raises what it raises."""
        is_old = row in self._objects
        if not is_old and method != "reset":
            raise UnavailableError("its object was lost with its process")
        if not is_old:
            self._objects[row] = _returned(self._make)
        held = self._objects[row]
        try:
            read: Callable[[Any], Any] = _CONVERTERS.get(method, _text)
            return read(_returned(lambda: getattr(held, method)(**arguments)))
        except Exception as error:
            if (method == "reset" or is_failure(error)) and self._objects.get(row) is held:
                self.forget(row)
            if is_old and method == "reset" and is_failure(error):
                return self.call(row, method, arguments)
            raise

    def forget(self, row: int) -> None:
        """Drop the row's object: the next reset makes another."""
        self._objects.pop(row, None)


class Function(Objects):
    """A tool that is a function, the same for all rows, which have no objects."""

    def call(self, row: int, method: str, arguments: Mapping[str, Any]) -> str:
        """Its result as text."""
        return _text(_returned(lambda: self._make(**arguments)))


def _returned(call: Callable[[], Any]) -> Any:
    """The result of a user's code; a coroutine is run, and ``sys.exit`` becomes an error of the call."""
    try:
        result = call()
        return _awaited(result) if inspect.iscoroutine(result) else result
    except SystemExit as error:
        raise RuntimeError(f"it raised SystemExit: {error}") from error


def _awaited(result: Any) -> Any:
    """The result of a coroutine: in a thread if a loop runs in this one, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(result)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, result).result()


def _text(answer: Any) -> str:
    if isinstance(answer, list) and any(isinstance(part, dict) and "type" in part for part in answer):
        raise UnavailableError("it answered with parts of a chat, not a text")
    return str(answer)


def _observation(answer: Any) -> str | None:
    if not isinstance(answer, str | None):
        raise TypeError(f"it returned {answer!r:.80}. Return a text for the prompt, or nothing.")
    return answer


def _finite(reward: Any) -> float:
    if not math.isfinite(number := float(reward)):
        raise ValueError(f"it returned {reward!r:.80}. Return a number.")
    return number


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "reset": _observation,
    "state": str,
    "turn_reward": _finite,
    "get_reward": lambda reward: None if reward is None else _finite(reward),
}
"""Method that the policy may not call → conversion of its result."""


def _answers(part: Objects, item: tuple[Any, float | None]) -> Iterator[tuple[int, Answer]]:
    """In the process: (number of the call, its answer), each as soon as it is known."""
    calls, limit = item
    if limit is None:
        yield from ((number, _answer(part, *call)) for number, call in enumerate(calls))
        return
    with ThreadPoolExecutor(CALLS_AT_ONCE) as threads:
        numbers = {threads.submit(_within, limit, part, *call): number for number, call in enumerate(calls)}
        for answered in as_completed(numbers):
            yield numbers[answered], answered.result()


def _within(limit: float, part: Objects, call: Asked, seed: int | None) -> Answer:
    """The answer to a call; one that takes too long is abandoned with its object: threads cannot be killed."""
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(_answer(part, call, seed)), daemon=True)
    thread.start()
    thread.join(limit)
    if answers:
        return answers[0]
    part.forget(call[0])
    return {"failed": _too_late(limit)}


def _answer(part: Objects, call: Asked, seed: int | None) -> Answer:
    try:
        if seed is not None:
            random.seed(seed)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(seed)
        result = part.call(*call)
        if len(str(result)) > MOST_CHARACTERS:
            raise ValueError(f"an answer of {len(result):,} characters, above {MOST_CHARACTERS:,}")
        return {"result": result}
    except Exception as error:  # noqa: BLE001 — read by the policy
        name = type(error).__name__
        return {"failed" if is_failure(error) else "refused": [name, str(error)[:MOST_CHARACTERS] or name]}


def _too_late(time_limit_s: float) -> list[str]:
    return ["TimeoutError", f"no answer within time_limit_s = {time_limit_s:g}"]

"""The class that TRL gets for a user's environment: calls are bounded in time, failures and turns are recorded.

The user's class follows TRL's contract: ``reset(**row)``, public methods with types and a docstring, which are the
tools, and ``get_reward()`` if it scores its rows. `environment_class` makes the class that TRL uses in its place.
"""

import inspect
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

from evenkeel.rewards.environments.user_objects import Answer, Host, UnavailableError
from evenkeel.rewards.verifier import readable

CONTROL = ("reset", "get_reward", "state", "turn_reward")
"""Methods of an environment that the model may not call."""
OBJECT = ""
"""Key of the user's object among hosts, which are keyed by tool names."""
Messages = Sequence[Mapping[str, Any]]
"""One row's conversation."""
Request = tuple["RowEnvironment", str, Mapping[str, Any]]
"""A row, the name of a tool or method, and the arguments."""


@dataclass
class Call:
    """One call of a tool.

    Attributes:
        name: of the tool.
        state: the environment's ``state()`` before it, as text; ``None`` without that method.
        reward: its ``turn_reward()`` after it; ``None`` without that method.
    """

    name: str
    state: str | None = None
    reward: float | None = None


class RowEnvironment:
    """One row's environment; the user's object is in its host.

    Attributes:
        failure: why the row cannot be scored; ``None`` = nothing failed.
        calls: of tools since the last reset, in their order.
    """

    turn_columns: ClassVar[frozenset[str]] = frozenset({"turn_rewards"})
    """Columns of `by_turn`: turn rewards, 0 without a method ``turn_reward``; state keys with a method ``state``."""
    _hosts: ClassVar[Mapping[str, Host]]
    """Name of a tool that is a function → its host; `OBJECT` → that of the user's object."""
    _tools: ClassVar[frozenset[str]]
    _control: ClassVar[frozenset[str]]
    """Those of `CONTROL` that the user's object has."""
    _numbers = itertools.count()
    _ahead: "CallsAhead | None" = None

    def __init__(self) -> None:
        self._number = next(self._numbers)
        self.failure: str | None = None
        self.calls: list[Call] = []

    def reset(self, **row: Any) -> str | None:
        """Start a new episode for ``row``. If the user's ``reset`` fails, the row is unscored; the run goes on."""
        self.failure, self.calls = None, []
        observation: str | None = self._asked("reset", row)
        return observation

    @classmethod
    @contextmanager
    def _side_by_side(cls, environments: Sequence["RowEnvironment"], completions: Sequence[Messages]) -> Iterator[None]:
        """Inside, the calls in the newest messages of ``completions`` are made for all rows in parallel."""
        ahead = CallsAhead(environments, completions)
        for environment in environments:
            environment._ahead = ahead
        try:
            yield
        finally:
            for environment in environments:
                environment._ahead = None

    def _asked(self, method: str, arguments: Mapping[str, Any] | None = None) -> Any:
        return asked([self], method, arguments)[0]

    def _fail(self, name: str, said: Sequence[Any]) -> None:
        kind, text = said
        self.failure = readable(f"{name} failed: {kind}: {text}")


def asked(rows: Sequence[RowEnvironment], method: str, arguments: Mapping[str, Any] | None = None) -> list[Any]:
    """The result of one of `CONTROL` for each row; ``None`` without that method, or if it fails: then the row fails."""
    able = [row for row in rows if method in row._control]
    found: dict[RowEnvironment, Any] = {}
    for row, answer in zip(able, _answers([(row, method, arguments or {}) for row in able]), strict=True):
        if said := answer.get("failed") or answer.get("refused"):
            row._fail(method, said)
        result = answer.get("result")
        found[row] = readable(result) if isinstance(result, str) else result
    return [found.get(row) for row in rows]


def called(calls: Sequence[Request]) -> list[Answer]:
    """Call one tool for each of several different rows, in parallel. A failed row calls nothing."""
    live = [call for call in calls if call[0].failure is None]
    for row, name, _ in live:
        row.calls.append(Call(name))
    for (row, *_), state in zip(live, asked([row for row, *_ in live], "state"), strict=True):
        row.calls[-1].state = state
    live = [call for call in live if call[0].failure is None]
    found = {call[0]: answer for call, answer in zip(live, _answers(live), strict=True)}
    for row, name, _ in live:
        if "failed" in found[row]:
            row._fail(name, found[row]["failed"])
    paid = [row for row, *_ in live if row.failure is None]
    for row, reward in zip(paid, asked(paid, "turn_reward"), strict=True):
        row.calls[-1].reward = reward
    gone = {"failed": ["UnavailableError", "The environment is not available any more."]}
    return [found.get(row, gone) for row, *_ in calls]


def _answers(calls: Sequence[Request]) -> list[Answer]:
    """The answers of all hosts. Hosts with a process work in parallel; those without one work in this thread."""
    of_hosts: dict[Host, list[int]] = {}
    for place, (row, name, _) in enumerate(calls):
        of_hosts.setdefault(row._hosts[name if name in row._hosts else OBJECT], []).append(place)
    found: dict[int, Answer] = {}
    with ThreadPoolExecutor(max(len(of_hosts), 1)) as threads:
        waiting: list[tuple[list[int], Callable[[], list[Answer]]]] = []
        for host, places in of_hosts.items():
            own = [(row._number, name, arguments) for row, name, arguments in (calls[place] for place in places)]
            if host.has_process:
                waiting.append((places, threads.submit(host.answers, own).result))
            else:
                found.update(zip(places, host.answers(own), strict=True))
        for places, answers in waiting:
            found.update(zip(places, answers(), strict=True))
    return [found[place] for place in range(len(calls))]


class CallsAhead:
    """The calls in a batch's newest turns, all made when TRL makes the first of them.

    TRL makes them one after another, which takes the sum of their times. The calls of one row keep their order; calls
    of different rows have none, so tools of different rows must not depend on each other. A call that was not foreseen
    is made when TRL makes it.

    Args:
        rows: environments of the batch.
        completions: their messages, to which TRL appends.
    """

    def __init__(self, rows: Sequence[RowEnvironment], completions: Sequence[Messages]) -> None:
        self.rows, self.completions = rows, completions
        self._made = defaultdict[RowEnvironment, deque[tuple[Any, Any, Answer]]](deque)
        self._begun: set[int] = set()

    def answer(self, row: RowEnvironment, name: str, arguments: Mapping[str, Any]) -> Answer:
        """The answer to a call of a row."""
        waiting = self._made[row]
        if not waiting:
            self._make_pending()
        if waiting and waiting[0][:2] == (name, arguments):
            return waiting.popleft()[2]
        waiting.clear()
        return called([(row, name, arguments)])[0]

    def _make_pending(self) -> None:
        wanted = [(row, self._wanted(row, messages)) for row, messages in zip(self.rows, self.completions, strict=True)]
        for place in range(max((len(calls) for _, calls in wanted), default=0)):
            now = [(row, *calls[place]) for row, calls in wanted if place < len(calls)]
            for (row, name, arguments), answer in zip(now, called(now), strict=True):
                self._made[row].append((name, arguments, answer))

    def _wanted(self, row: RowEnvironment, messages: Messages) -> list[tuple[str, Mapping[str, Any]]]:
        """The calls in a row's newest message, if it is the policy's and they have not been made yet."""
        newest = messages[-1]
        if newest.get("role") != "assistant" or id(newest) in self._begun:
            return []
        # Also of a row that TRL ends because the answer is too long for it.
        self._begun.add(id(newest))
        functions = [call.get("function") or {} for call in newest.get("tool_calls") or ()]
        return [
            (function["name"], function["arguments"])
            for function in functions
            if function.get("name") in row._tools and isinstance(function.get("arguments"), Mapping)
        ]


def environment_class(
    kind: type, host: Host | None, tools: Mapping[str, tuple[Callable[..., Any], Host]]
) -> type[RowEnvironment]:
    """The class whose instances TRL gets in place of those of the user's class ``kind``.

    Its tools are the public methods of ``kind``, and ``tools``, with the user's signatures and docstrings, from which
    TRL makes schemas.

    Args:
        host: of the objects; ``None`` = no objects.
        tools: name → function and its host.
    """
    found = inspect.getmembers(kind, inspect.isfunction)
    methods = {
        each: _method(each, function, has_self=inspect.isfunction(inspect.getattr_static(kind, each)))
        for each, function in found
        if each[0] != "_" and each not in CONTROL
    }
    functions = {each: _method(each, function, has_self=False) for each, (function, _) in tools.items()}
    settings: dict[str, Any] = {
        "_hosts": {OBJECT: host, **{name: own for name, (_, own) in tools.items()}},
        "_tools": frozenset({*methods, *functions}),
        "_control": frozenset(method for method in CONTROL if callable(getattr(kind, method, None))),
    }
    if "state" in settings["_control"]:
        settings["turn_columns"] = RowEnvironment.turn_columns | {"state_keys"}
    return type(kind.__name__, (RowEnvironment,), {**methods, **functions, **settings})


def _method(name: str, function: Callable[..., Any], *, has_self: bool) -> Callable[..., Any]:
    """A method that calls the user's ``function``, by its ``name``; without ``has_self`` it is no method.

    It returns the answer as text. An exception is raised again as an `UnavailableError` or ``ValueError`` with the
    original name, for the policy to read.
    """
    signature = inspect.signature(function)
    if not has_self:
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        signature = signature.replace(parameters=[itself, *signature.parameters.values()])

    @wraps(function)
    def method(self: RowEnvironment, *positional: Any, **keywords: Any) -> str:
        if positional:
            _, *given = signature.bind(self, *positional, **keywords).arguments.items()
            keywords = dict(given)
        answer = (
            called([(self, name, keywords)])[0] if self._ahead is None else self._ahead.answer(self, name, keywords)
        )
        for key, base in (("failed", UnavailableError), ("refused", ValueError)):
            if key in answer:
                kind, text = map(str, answer[key])
                raise type(kind, (base,), {})(text)
        return readable(str(answer["result"]))

    method.__name__, method.__signature__ = name, signature  # type: ignore[attr-defined]
    return method


def by_turn(environments: Sequence[RowEnvironment], completions: Sequence[Messages]) -> dict[str, list[Any]]:
    """Columns of a batch, each a list per row with one entry per assistant turn.

    ``turn_rewards``: the sum of ``turn_reward()`` over the turn's calls, 0 without calls; ``state_keys``: ``state()``
    before the turn's first call, or at the end if the turn has no calls (the last message). A column exists if an
    environment of the batch has that method.
    """
    rows: list[list[list[Call]]] = []
    for environment, messages in zip(environments, completions, strict=True):
        left = list(environment.calls)
        rows.append([])
        for message in messages:
            if message["role"] == "assistant":
                names = [call["function"]["name"] for call in message.get("tool_calls") or () if "function" in call]
                rows[-1].append([left.pop(0) for name in names if left and left[0].name == name])
    columns: dict[str, list[Any]] = {}
    if any("turn_reward" in each._control for each in environments):
        columns["turn_rewards"] = [[sum(call.reward or 0.0 for call in turn) for turn in turns] for turns in rows]
    if any("state" in each._control for each in environments):
        live = [each for each in environments if each.failure is None]
        at_end = dict(zip(live, asked(live, "state"), strict=True))
        columns["state_keys"] = [
            [turn[0].state if turn else at_end.get(row) for turn in turns]
            for row, turns in zip(environments, rows, strict=True)
        ]
    return columns

"""An environment of a user's as a trainer is given it: no call holds the run, what failed is known, turns are recorded.

The user's class follows TRL's contract: ``reset(**row)``, public methods with types and a docstring, which are the
tools, and ``get_reward()`` if it scores its rows. `environment_class` makes a class of it that TRL takes for the same.
"""

import inspect
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

from evenkeel.rewards.environments.user_objects import Answer, Host, UnavailableError
from evenkeel.rewards.verifier import readable

CONTROL = ("reset", "get_reward", "state", "turn_reward")
"""Methods of an environment that no model may call."""
OBJECT = ""
"""In place of a tool's name: the host of the user's object."""


@dataclass
class Call:
    """One call of a tool.

    Attributes:
        name: of the tool.
        state: the environment's ``state()`` before it, as text; ``None`` where it has none.
        reward: its ``turn_reward()`` after it; ``None`` where it has none.
    """

    name: str
    state: str | None = None
    reward: float | None = None


class RowEnvironment:
    """One row's environment; the user's object is in its host.

    Attributes:
        failure: why the row cannot be scored; ``None`` where nothing failed.
        calls: of tools since the last reset, in their order.
    """

    turn_columns: ClassVar[frozenset[str]] = frozenset({"turn_rewards"})
    """What `by_turn` can say of it: what turns were paid, which is 0 where it does not say; states if it names them."""
    _hosts: ClassVar[Mapping[str, Host]]
    """Of each tool that is a function, by its name, and of the user's `OBJECT`."""
    _tools: ClassVar[frozenset[str]]
    _answers: ClassVar[frozenset[str]]
    """Which of `CONTROL` the user's object has."""
    _numbers = itertools.count()
    _ahead: "CallsAhead | None" = None

    def __init__(self) -> None:
        self._number = next(self._numbers)
        self.failure: str | None = None
        self.calls: list[Call] = []

    def reset(self, **row: Any) -> str | None:
        """As the user's: a new episode for ``row``. One that fails leaves the row unscored; the run goes on."""
        self.failure, self.calls = None, []
        observation: str | None = self._asked("reset", row)
        return observation

    @classmethod
    @contextmanager
    def _side_by_side(
        cls, environments: Sequence["RowEnvironment"], completions: Sequence[Sequence[Mapping[str, Any]]]
    ) -> Iterator[None]:
        """Inside, the calls that the newest messages of ``completions`` ask for are made for all rows together."""
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
    """What one of `CONTROL` returns for each row; ``None`` where there is none, or it fails, and with it the row."""
    able = [row for row in rows if method in row._answers]
    found: dict[RowEnvironment, Any] = {}
    for row, answer in zip(able, _answers([(row, method, arguments or {}) for row in able]), strict=True):
        if said := answer.get("failed") or answer.get("refused"):
            row._fail(method, said)
        result = answer.get("result")
        found[row] = readable(result) if isinstance(result, str) else result
    return [found.get(row) for row in rows]


def called(calls: Sequence[tuple[RowEnvironment, str, Mapping[str, Any]]]) -> list[Answer]:
    """Call a tool for each of different rows, at once. A failed row calls nothing."""
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


def _answers(calls: Sequence[tuple[RowEnvironment, str, Mapping[str, Any]]]) -> list[Answer]:
    """The answers of all hosts, which work at once; those in this very process work in this thread."""
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
    """The calls that a batch's newest turns ask for, made when TRL asks for the first of them.

    TRL makes one after another: a batch waits for their sum. The calls of one row keep their order; of different rows
    nothing is in order, so that tools of different rows must not depend on each other. A call that was not foreseen is
    made when it is asked for.

    Args:
        rows: of the batch.
        completions: their messages, to which TRL adds.
    """

    def __init__(self, rows: Sequence[RowEnvironment], completions: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        self.rows, self.completions = rows, completions
        self._made: dict[RowEnvironment, deque[tuple[str, Mapping[str, Any], Answer]]] = {row: deque() for row in rows}
        self._begun: set[int] = set()

    def answer(self, row: RowEnvironment, name: str, arguments: Mapping[str, Any]) -> Answer:
        """What the call of a row returns or raises."""
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

    def _wanted(
        self, row: RowEnvironment, messages: Sequence[Mapping[str, Any]]
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """The calls of a row's newest message, if it is the policy's and they were not made yet."""
        newest = messages[-1]
        if newest.get("role") != "assistant" or id(newest) in self._begun:
            return []
        self._begun.add(id(newest))  # also of a row that TRL ends because the answer is too long for it
        functions = [call.get("function") or {} for call in newest.get("tool_calls") or ()]
        return [
            (function["name"], function["arguments"])
            for function in functions
            if function.get("name") in row._tools and isinstance(function.get("arguments"), Mapping)
        ]


def environment_class(
    kind: type,
    host: Host | None,
    tools: Mapping[str, tuple[Callable[..., Any], Host]],
) -> type[RowEnvironment]:
    """The class whose instances TRL is given in place of those of the user's class ``kind``.

    Its tools are the public methods of ``kind``, and ``tools``. They have the signatures and docstrings of the user's:
    TRL makes schemas of those.

    Args:
        host: of the objects; ``None`` = there are none.
        tools: name → function and its host.
    """
    found = inspect.getmembers(kind, inspect.isfunction)
    methods = {each: _method(function) for each, function in found if each[0] != "_" and each not in CONTROL}
    functions = {each: _method(function, is_own=False) for each, (function, _) in tools.items()}
    settings: dict[str, Any] = {
        "_hosts": {OBJECT: host, **{name: own for name, (_, own) in tools.items()}},
        "_tools": frozenset({*methods, *functions}),
        "_answers": frozenset(method for method in CONTROL if callable(getattr(kind, method, None))),
    }
    if "state" in settings["_answers"]:
        settings["turn_columns"] = RowEnvironment.turn_columns | {"state_keys"}
    return type(kind.__name__, (RowEnvironment,), {**methods, **functions, **settings})


def _method(function: Callable[..., Any], *, is_own: bool = True) -> Callable[..., Any]:
    """A method that calls the user's of the same name, or a function that is no method.

    It returns the answer as text. What was raised is raised as an `UnavailableError` or ``ValueError`` of the same
    name, and the policy reads it.
    """
    name, signature = function.__name__, inspect.signature(function)
    if not is_own:
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

    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def by_turn(
    environments: Sequence[RowEnvironment], completions: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, list[Any]]:
    """What environments recorded, by the assistant turns of each row: columns of a batch.

    ``turn_rewards``: the sum of ``turn_reward()`` over the calls of a turn, 0 in a turn without; ``state_keys``: the
    ``state()`` before a turn's first call; of a turn without one (the last word) the state at the end. Each is there if
    an environment of the batch has that method.
    """
    rewards: list[list[float]] = []
    states: list[list[str | None]] = []
    live = [environment for environment in environments if environment.failure is None]
    at_end = dict(zip(live, asked(live, "state"), strict=True))
    for environment, messages in zip(environments, completions, strict=True):
        left = list(environment.calls)
        turns: list[list[Call]] = []
        for message in messages:
            if message["role"] == "assistant":
                names = [call["function"]["name"] for call in message.get("tool_calls") or () if "function" in call]
                turns.append([left.pop(0) for name in names if left and left[0].name == name])
        rewards.append([sum(call.reward or 0.0 for call in turn) for turn in turns])
        states.append([turn[0].state if turn else at_end.get(environment) for turn in turns])
    answers = frozenset[str]().union(*(environment._answers for environment in environments))
    columns: dict[str, list[Any]] = {}
    if "turn_reward" in answers:
        columns["turn_rewards"] = rewards
    if "state" in answers:
        columns["state_keys"] = states
    return columns

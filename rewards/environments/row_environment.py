"""An environment of a user's as a trainer is given it: no call holds the run, what failed is known, turns are recorded.

The user's class follows TRL's contract: ``reset(**row)``, public methods with types and a docstring, which are the
tools, and ``get_reward()`` if it judges. `environment_class` makes a class of it that TRL takes for the same.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

from evenkeel.rewards.environments.side_by_side import SideBySide
from evenkeel.rewards.environments.user_objects import InProcess, InThread, UnavailableError, is_failure
from evenkeel.rewards.verifier import readable

MOST_CHARACTERS = 1_000_000
"""Of the text that a reset adds to a prompt: more than a policy reads."""
CONTROL = ("reset", "get_reward", "state", "turn_reward")
"""Methods of an environment that no model may call."""


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
    """One row's environment, in which the user's object lies.

    Attributes:
        failure: why the row cannot be judged; ``None`` where nothing failed.
        calls: of tools since the last reset, in their order.
    """

    turn_columns: ClassVar[frozenset[str]] = frozenset({"turn_rewards"})
    """What `by_turn` can say of it: what turns were paid, which is 0 where it does not say; states if it names them."""
    resets_objects: ClassVar[bool] = False
    """Whether the user's object is reset for the next row, so that it may keep something that no checkpoint holds."""
    _calls_at_once: ClassVar[int]
    _functions: ClassVar[Mapping[str, Callable[..., Any]]]
    """Name → tool that is no method of the user's object."""
    _tools: ClassVar[frozenset[str]]
    _answers: ClassVar[frozenset[str]]
    """Which of `CONTROL` the user's object has; ``get_reward`` also where it has the attribute ``reward`` instead."""
    _beside: SideBySide | None = None

    @staticmethod
    def _make() -> InThread | InProcess:
        raise NotImplementedError("environment_class says what the user's object is made by.")

    def __init__(self) -> None:
        self._object = self._make()
        self.failure: str | None = None
        self.calls: list[Call] = []

    def reset(self, **row: Any) -> str | None:
        """As the user's: a new episode for ``row``. One that fails leaves the row unjudged; the run goes on."""
        self.failure, self.calls = None, []
        try:
            observation = _joined(self._object.call("reset", row))
            if isinstance(observation, str) and len(observation) > MOST_CHARACTERS:
                raise ValueError(f"it returned {len(observation):,} characters, and a prompt has room for fewer")
            if isinstance(observation, str | None):
                return observation and readable(observation)
            what = f"it returned {observation!r:.80} of type {type(observation).__name__}"
            raise TypeError(f"{what}. Return a text for the prompt, or nothing.")
        except Exception as error:  # noqa: BLE001 — a user's code, or a server behind it, may raise anything
            self._fail("reset", error)
            return None

    @classmethod
    @contextmanager
    def _side_by_side(
        cls, environments: Sequence["RowEnvironment"], completions: Sequence[Sequence[Mapping[str, Any]]]
    ) -> Iterator[None]:
        """Inside, the calls that the newest messages of ``completions`` ask for are made for all rows together."""
        together = SideBySide(environments, completions, cls._calls_at_once)
        for environment in environments:
            environment._beside = together if cls._calls_at_once > 1 else None
        try:
            yield
        finally:
            for environment in environments:
                environment._beside = None

    def _made(self, name: str, arguments: Mapping[str, Any], outcome: Callable[[], Any] | None = None) -> Any:
        """Make a call of a tool; ``outcome`` gives what it returned or raises, where it was made already."""
        if outcome is not None:
            return self._call(name, outcome)
        if name in self._functions:
            return self._call(name, lambda: self._functions[name](**arguments))
        return self._call(name, lambda: self._object.call(name, arguments))

    def _call(self, name: str, tool: Callable[[], Any]) -> str:
        """A tool's answer as text. What it raises is raised, and the policy reads it. A failed row calls nothing."""
        if self.failure is None:
            call = Call(name, self._asked("state"))
            self.calls.append(call)
        if self.failure is not None:  # of an earlier call, or of `state`
            raise UnavailableError("The environment is not available any more.")
        try:
            return readable(str(_joined(tool())))
        except Exception as error:
            if is_failure(error):
                self._fail(name, error)
            raise
        finally:
            if self.failure is None:
                call.reward = self._asked("turn_reward")

    def _asked(self, method: str) -> Any:
        """What one of `CONTROL` returns; ``None`` where there is none, or it fails, and with it the row."""
        if method not in self._answers:
            return None
        try:
            answer = self._object.call(method, {})
            return readable(answer) if isinstance(answer, str) else answer
        except Exception as error:  # noqa: BLE001 — of a user's code
            self._fail(method, error)
            return None

    def _fail(self, name: str, error: Exception) -> None:
        self.failure = readable(f"{name} failed: {type(error).__name__}: {error}")


def _joined(answer: Any) -> Any:
    """The text of a list of parts ``{type: text, text: …}``, as multimodal chats hold them; another answer as it is.

    Raises:
        UnavailableError: a part is an image, or else no text.
    """
    if (
        not isinstance(answer, list)
        or not answer
        or not all(isinstance(part, dict) and "type" in part for part in answer)
    ):
        return answer
    if others := {str(part["type"]) for part in answer} - {"text"}:
        raise UnavailableError(f"it answered with {', '.join(sorted(others))}, and policies here read text alone")
    return "".join(str(part["text"]) for part in answer)


def environment_class(
    make: Callable[[], InThread | InProcess],
    kind: type,
    tools: Mapping[str, Callable[..., Any]],
    calls_at_once: int,
    *,
    resets_objects: bool,
    has_reward: bool = False,
) -> type[RowEnvironment]:
    """The class whose instances TRL is given in place of those of the user's class ``kind``, which ``make`` makes.

    Its tools are the public methods of ``kind``, and ``tools``, which keep limits of their own. They have the
    signatures and docstrings of the user's: TRL makes schemas of those. ``has_reward``: it has an
    attribute ``reward``.
    """
    found = inspect.getmembers(kind, inspect.isfunction)
    methods = {each: _method(function) for each, function in found if each[0] != "_" and each not in CONTROL}
    functions = {each: _method(function, is_own=False) for each, function in tools.items()}
    settings: dict[str, Any] = {
        "_make": staticmethod(make),
        "_calls_at_once": calls_at_once,
        "_functions": dict(tools),
        "_tools": frozenset({*methods, *functions}),
        "_answers": frozenset(
            method
            for method in CONTROL
            if callable(getattr(kind, method, None)) or (method == "get_reward" and has_reward)
        ),
        "resets_objects": resets_objects,
    }
    if "state" in settings["_answers"]:
        settings["turn_columns"] = RowEnvironment.turn_columns | {"state_keys"}
    return type(kind.__name__, (RowEnvironment,), {**methods, **functions, **settings})


def _method(function: Callable[..., Any], *, is_own: bool = True) -> Callable[..., Any]:
    """A method that calls the user's of the same name, or a function that is no method."""
    name, signature = function.__name__, inspect.signature(function)
    if not is_own:
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        signature = signature.replace(parameters=[itself, *signature.parameters.values()])

    @wraps(function)
    def called(self: RowEnvironment, *positional: Any, **keywords: Any) -> Any:
        if self._beside is not None and not positional:
            return self._beside.outcome(self, name, keywords)
        if positional:
            _, *given = signature.bind(self, *positional, **keywords).arguments.items()
            return self._made(name, dict(given))
        return self._made(name, keywords)

    called.__signature__ = signature  # type: ignore[attr-defined]
    return called


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
    for environment, messages in zip(environments, completions, strict=True):
        left = list(environment.calls)
        turns: list[list[Call]] = []
        for message in messages:
            if message["role"] == "assistant":
                names = [call["function"]["name"] for call in message.get("tool_calls") or () if "function" in call]
                turns.append([left.pop(0) for name in names if left and left[0].name == name])
        at_end = environment._asked("state") if environment.failure is None else None
        rewards.append([sum(call.reward or 0.0 for call in turn) for turn in turns])
        states.append([turn[0].state if turn else at_end for turn in turns])
    answers = frozenset[str]().union(*(environment._answers for environment in environments))
    columns: dict[str, list[Any]] = {}
    if "turn_reward" in answers:
        columns["turn_rewards"] = rewards
    if "state" in answers:
        columns["state_keys"] = states
    return columns

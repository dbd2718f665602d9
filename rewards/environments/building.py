"""Environments and tools by name, as run files write them, built and tried before a model is loaded."""

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from evenkeel.rewards.environments.row_environment import RowEnvironment, environment_class
from evenkeel.rewards.environments.shipped import ENVIRONMENTS
from evenkeel.rewards.environments.tools import TOOLS
from evenkeel.rewards.environments.user_objects import Function, Host, Objects
from evenkeel.rewards.registry import Found, Kind, PartError, PartSpec

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
MOST_ROWS = 8


class EnvironmentPartError(PartError):
    """An environment or a tool that cannot be found, built or used; the message says what to write instead."""

    code = "environment"


ENVIRONMENT_KIND = Kind("environment", lambda: ENVIRONMENTS, EnvironmentPartError)
TOOL_KIND = Kind("tool", lambda: TOOLS, EnvironmentPartError)


class Tools:
    """The environment of a row that has tools and nothing else."""


def build_environment(spec: PartSpec | None, tools: Sequence[PartSpec] = ()) -> type[RowEnvironment]:
    """The class of environments that ``spec`` names, with ``tools`` beside its own.

    The objects of all rows are in one process, and so is each tool, where they can be imported by name; the process is
    ended where a call takes more than its memory, crashes, or holds the interpreter beyond its time. Others are called
    as TRL calls them, without limits.

    Args:
        spec: a name, ``package.module:Class``, ``{name: …, option: …}`` or a class; ``None`` = tools alone. It is
            called with its options for each row of a batch, and reset for the next one. ``time_limit_s`` (30) is the
            limit of each call of it; of one that has an option of that name, four times as much is. ``memory_mb``
            (2048), unless it has an option of that name, is what its process may take.
        tools: functions by name, ``package.module:function``, or ``{name: …, time_limit_s: …, memory_mb: …}``.

    Raises:
        EnvironmentPartError: an unknown name, a failing import, an option or method that is not as it must be.
    """
    functions = {function.__name__: (function, host) for function, host in map(_tool, tools)}
    if len(functions) < len(tools):
        what = f"two of {len(tools)} tools have one name: {', '.join(functions)}. Rename one."
        raise EnvironmentPartError(what, code="tool-twice")
    if spec is None:
        return environment_class(Tools, None, functions)
    found = ENVIRONMENT_KIND.find(spec)
    kind = found.target
    if not isinstance(kind, type) or not callable(getattr(kind, "reset", None)):
        what = f"environment {found.label!r} is not a class with a method reset. Write def reset(self, **row)."
        raise EnvironmentPartError(what, code="no-reset")
    if twice := sorted(set(functions) & {name for name, _ in inspect.getmembers(kind, inspect.isfunction)}):
        what = f"{', '.join(twice)} is both a tool and a method of environment {found.label!r}. Rename one of them."
        raise EnvironmentPartError(what, code="tool-twice")
    parameters = inspect.signature(kind).parameters
    shared = {"time_limit_s"} | {"memory_mb"} - parameters.keys()
    given = {name: value for name, value in found.options.items() if name in shared}
    settings = _settings(ENVIRONMENT_KIND, Found(found.label, kind, given))
    settings["time_limit_s"] *= 4 if "time_limit_s" in parameters else 1
    own = {name: value for name, value in found.options.items() if name in parameters or name not in given}
    options = ENVIRONMENT_KIND.checked_options(
        Found(found.label, kind, own), parameters.values(), found.target.__init__
    )
    host = Host(Objects(partial(kind, **options)), **settings)
    pays = callable(getattr(kind, "get_reward", None)) or not callable(inspect.getattr_static(kind, "reward", len))
    if not pays:  # one written for TRL may set it when it is made
        (answer,) = host.answers([(0, "has_reward", {})])
        if said := answer.get("failed") or answer.get("refused"):
            what = f"environment {found.label!r} cannot be made: {said[0]}: {said[1]}"
            raise EnvironmentPartError(what, code="failed-constructor")
        pays = bool(answer["result"])
    return environment_class(kind, host, functions, has_reward=pays)


def _limits(*, time_limit_s: Seconds = 30.0, memory_mb: Count = 2048) -> None:
    """Options of every environment and tool."""


def _settings(kind: Kind, found: Found) -> dict[str, Any]:
    parameters = inspect.signature(_limits).parameters
    given = kind.checked_options(found, parameters.values(), _limits)
    return {name: each.default for name, each in parameters.items()} | given


def _tool(spec: PartSpec) -> tuple[Callable[..., Any], Host]:
    found = TOOL_KIND.find(spec)
    target = found.target
    if not inspect.isfunction(target):
        what = f"tool {found.label!r} is not a function."
        raise EnvironmentPartError(what, code="not-a-function")
    untyped = [name for name, each in inspect.signature(target).parameters.items() if each.annotation is each.empty]
    if untyped or not target.__doc__:
        lacks = f"a type for {untyped[0]}" if untyped else "a docstring"
        what = f"tool {found.label!r} cannot be described to the policy: it lacks {lacks}. Write types and a docstring."
        raise EnvironmentPartError(what, code="tool-without-schema")
    return target, Host(Function(target), **_settings(TOOL_KIND, found))


def tools_of(kind: type[RowEnvironment]) -> list[str]:
    """The names of what a policy may call."""
    return sorted(kind._tools)


def has_reward(kind: type[RowEnvironment]) -> bool:
    """Whether an environment judges its rows."""
    return "get_reward" in kind._answers


def trial_problem(kind: type[RowEnvironment], parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The first thing that is wrong with an environment on a few of its rows; empty where nothing is.

    It is reset for up to eight rows of each part, spread over all. Then, once, each tool is called with ``None`` for
    every argument, which it may refuse by an exception, that the policy then reads; and it is asked for its reward.

    Args:
        parts: what the rows are called → rows; at least one row in all.
    """
    environment = kind()
    for label, rows in parts.items():
        for number in range(0, len(rows), max(1, -(-len(rows) // MOST_ROWS))):
            environment.reset(**rows[number])
            if environment.failure is not None:
                return f"{label}: environment {kind.__name__}, row {number}: {environment.failure}"
    first = next(rows[0] for rows in parts.values() if rows)
    for name in tools_of(kind):
        tool = getattr(environment, name)
        required = [p.name for p in inspect.signature(tool).parameters.values() if p.default is p.empty]
        environment.reset(**first)
        with contextlib.suppress(Exception):  # a refusal, which the policy reads
            tool(**dict.fromkeys(required))
        if environment.failure is not None:
            given = ", ".join(f"{each}=None" for each in required)
            where = "tool" if name in kind._hosts else f"environment {kind.__name__},"
            return (
                f"{where} {name}({given}): {environment.failure}. A policy writes such calls: return a text or raise a "
                "ValueError, in time."
            )
    if has_reward(kind):
        environment.reset(**first)
        score = environment._asked("get_reward")
        if environment.failure is not None or (score is not None and not math.isfinite(score)):
            return f"environment {kind.__name__}: {environment.failure or f'get_reward returned {score}'}"
    return ""

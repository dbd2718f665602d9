"""Environments and tools by name, as run files write them, built and tried before a model is loaded."""

import contextlib
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evenkeel.rewards.environments.row_environment import RowEnvironment, environment_class
from evenkeel.rewards.environments.shipped import ENVIRONMENTS
from evenkeel.rewards.environments.tools import TOOLS, in_worker
from evenkeel.rewards.environments.user_objects import InProcess, InThread, UserObject, within
from evenkeel.rewards.registry import Found, Kind, PartError, PartSpec

TIME_LIMIT_S = 30.0
"""Of each call, unless the specification says another."""
CALLS_AT_ONCE = 16
"""Of different rows, unless the specification says another number."""
MEMORY_MB = 2048
"""That a process of an environment's own may take beyond what it holds when its object is made, or one of a tool,
unless the specification says another number."""
MOST_ROWS = 8


class EnvironmentPartError(PartError):
    """An environment or a tool that cannot be found, built or used; the message says what to write instead."""

    code = "environment"


ENVIRONMENT_KIND = Kind("environment", "evenkeel.environments", lambda: ENVIRONMENTS, EnvironmentPartError)
TOOL_KIND = Kind("tool", "evenkeel.tools", lambda: TOOLS, EnvironmentPartError)


class Tools:
    """The environment of a row that has tools and nothing else."""

    def reset(self, **_: Any) -> None:
        """Nothing to begin with."""


def build_environment(spec: PartSpec | None, tools: Sequence[PartSpec] = ()) -> type[RowEnvironment]:
    """The class of environments that ``spec`` names, with ``tools`` beside its own.

    Args:
        spec: a name, ``package.module:Class``, ``{name: …, option: …}`` or a class; ``None`` = tools alone. It is
            called with its options for each row of a batch. ``time_limit_s`` (30) is the limit of each call of it; of
            one that has an option of that name, four times as much is. ``calls_at_once`` (16) of different rows are
            made side by side; 1 = one after another, for an environment whose rows share something that must not be
            used by two. ``isolated`` gives each row's object a process, which is ended at the limit of time and at
            ``memory_mb`` (2048). ``new_for_each_row`` makes an object for each row instead of resetting that of an
            earlier one, which is done elsewhere, as by TRL; it is the default of those that ship.
        tools: functions by name, ``package.module:function``, or ``{name: …, time_limit_s: …, memory_mb: …}``. Each
            call of one runs in a worker process, which is ended at the limits.

    Raises:
        EnvironmentPartError: an unknown name, a failing import, an option or method that is not as it must be.
    """
    functions = {tool.__name__: tool for tool in map(_tool, tools)}
    if len(functions) < len(tools):
        what = f"tools lists {len(tools)}, of which two have one name: {', '.join(functions)}. Delete or rename one."
        raise EnvironmentPartError(what, code="tool-twice")
    if spec is None:
        nothing = partial(InThread, partial(UserObject, Tools, new_for_each_row=False), TIME_LIMIT_S)
        return environment_class(nothing, Tools, functions, CALLS_AT_ONCE, resets_objects=False)
    found = ENVIRONMENT_KIND.find(spec)
    kind = found.target
    if not isinstance(kind, type) or not callable(getattr(kind, "reset", None)):
        what = f"environment {found.label!r} is not a class with a method reset, by which a row begins."
        raise EnvironmentPartError(f"{what} Write one: def reset(self, **row).", code="no-reset")
    parameters = inspect.signature(kind).parameters
    options = dict(found.options)
    at_once = options.pop("calls_at_once", CALLS_AT_ONCE)
    if isinstance(at_once, bool) or not isinstance(at_once, int) or at_once < 1:
        raise _not_accepted(found, "calls_at_once", at_once, "a whole number above 0. Write 1 or more")
    is_isolated = _switch(found, options, "isolated", default=False)
    is_new = _switch(found, options, "new_for_each_row", default=found.target in ENVIRONMENTS.values())
    has_own_limit = "memory_mb" in parameters or not is_isolated
    memory_mb = MEMORY_MB if has_own_limit else options.pop("memory_mb", MEMORY_MB)
    limit = options.get("time_limit_s", TIME_LIMIT_S)
    _check_limits(ENVIRONMENT_KIND, found, limit, memory_mb)
    if "time_limit_s" in parameters:
        limit *= 4
    else:
        options.pop("time_limit_s", None)
    chosen = Found(found.label, found.target, options)
    options = ENVIRONMENT_KIND.checked_options(chosen, parameters.values(), found.target.__init__)
    row_object: Callable[[], InThread | InProcess]
    if is_isolated:
        probed: Any = kind
        path = f"{kind.__module__}:{kind.__qualname__}"
        if "<locals>" in path or kind.__module__ == "__main__":
            what = f"environment {found.label!r} is not a class of a module, by which a process of its own finds it."
            raise EnvironmentPartError(f"{what} Write one, or leave isolated out.", code="not-a-class")
        if away := [name for name, value in options.items() if not _is_json(value)]:
            what = (
                f"of isolated environment {found.label!r} the option {away[0]} = {options[away[0]]!r} is not of JSON,"
            )
            raise EnvironmentPartError(f"{what} in which its process is told of it. Write a text.", code="not-json")
        row_object = partial(InProcess, path, options, limit, memory_mb, new_for_each_row=is_new)
    else:
        make = partial(kind, **options)
        try:
            probed = within(limit, make)
        except Exception as error:
            what = f"environment {found.label!r} cannot be made: {type(error).__name__}: {error}"
            raise EnvironmentPartError(what, code="failed-constructor") from error
        row_object = partial(InThread, partial(UserObject, make, new_for_each_row=is_new), limit)
    if twice := sorted(set(functions) & {name for name, _ in inspect.getmembers(kind, inspect.isfunction)}):
        what = f"{', '.join(twice)} is both a tool and a method of environment {found.label!r}. Rename one of them."
        raise EnvironmentPartError(what, code="tool-twice")
    paid = inspect.getattr_static(probed, "reward", len)  # a property is not read: no row has begun
    return environment_class(
        row_object, kind, functions, at_once, resets_objects=not is_new, has_reward=not callable(paid)
    )


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def _switch(found: Found, options: dict[str, Any], name: str, *, default: bool) -> bool:
    value = options.pop(name, default)
    if not isinstance(value, bool):
        raise _not_accepted(found, name, value, "true or false. Write one of them")
    return value


def _not_accepted(found: Found, name: str, value: Any, wanted: str) -> EnvironmentPartError:
    what = f"environment {found.label!r}: {name} = {value!r} is not {wanted}."
    return EnvironmentPartError(what, code="option-not-accepted")


def _tool(spec: PartSpec) -> Callable[..., Any]:
    found = TOOL_KIND.find(spec)
    limits = {"time_limit_s": TIME_LIMIT_S, "memory_mb": MEMORY_MB} | found.options
    _check_limits(TOOL_KIND, found, limits["time_limit_s"], limits["memory_mb"])
    if unknown := [name for name in limits if name not in ("time_limit_s", "memory_mb")]:
        what = f"tool {found.label!r} has no option {unknown[0]!r}. Its options: time_limit_s, memory_mb."
        raise EnvironmentPartError(what, code="unknown-option")
    target = found.target
    if not inspect.isfunction(target) or "." in target.__qualname__:
        what = f"tool {found.label!r} is not a function of a module, by which a worker process finds it. Write one."
        raise EnvironmentPartError(what, code="not-a-function")
    untyped = [name for name, each in inspect.signature(target).parameters.items() if each.annotation is each.empty]
    if untyped or not target.__doc__:
        lacks = f"a type for {untyped[0]}" if untyped else "a docstring"
        what = f"tool {found.label!r} cannot be described to the policy: it lacks {lacks}. Write types and a docstring."
        raise EnvironmentPartError(what, code="tool-without-schema")
    return in_worker(target, **limits)


def _check_limits(kind: Kind, found: Found, limit: Any, memory_mb: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit) or limit <= 0:
        what = f"{kind.name} {found.label!r}: time_limit_s = {limit!r} is not a number of seconds above 0. Write one."
        raise kind.error(what, code="option-not-accepted")
    if isinstance(memory_mb, bool) or not isinstance(memory_mb, int) or memory_mb < 1:
        what = f"{kind.name} {found.label!r}: memory_mb = {memory_mb!r} is not a whole number of MiB above 0."
        raise kind.error(f"{what} Write one.", code="option-not-accepted")


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
            where = "tool" if name in kind._functions else f"environment {kind.__name__},"
            return (
                f"{where} {name}({given}): {environment.failure}. A policy writes such calls: answer in time, with "
                "text or an error that it can read, a ValueError."
            )
    if has_reward(kind):
        environment.reset(**first)
        score = environment._asked("get_reward")
        if environment.failure is not None or (score is not None and not math.isfinite(score)):
            return f"environment {kind.__name__}: {environment.failure or f'get_reward returned {score}'}"
    return ""

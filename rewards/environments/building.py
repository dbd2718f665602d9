"""Environments and tools by name, as run files write them, built and tried before a model is loaded."""

import contextlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evenkeel.rewards.environments.row_environment import RowEnvironment, environment_class
from evenkeel.rewards.environments.shipped import ENVIRONMENTS
from evenkeel.rewards.environments.tools import TOOLS, in_worker
from evenkeel.rewards.registry import Found, Kind, PartError, PartSpec

TIME_LIMIT_S = 30.0
"""Of each call, unless the specification says another."""
CALLS_AT_ONCE = 16
"""Of different rows, unless the specification says another number."""
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
            used by two.
        tools: functions by name, ``package.module:function``, or ``{name: …, time_limit_s: …}``. Each call of one runs
            in a worker process, which is ended at the limit.

    Raises:
        EnvironmentPartError: an unknown name, a failing import, an option or method that is not as it must be.
    """
    functions = {tool.__name__: tool for tool in map(_tool, tools)}
    if spec is None:
        return environment_class(Tools, Tools(), TIME_LIMIT_S, functions, CALLS_AT_ONCE)
    found = ENVIRONMENT_KIND.find(spec)
    parameters = inspect.signature(found.target).parameters
    options = dict(found.options)
    at_once = options.pop("calls_at_once", CALLS_AT_ONCE)
    if isinstance(at_once, bool) or not isinstance(at_once, int) or at_once < 1:
        what = (
            f"environment {found.label!r}: calls_at_once = {at_once!r} is not a whole number above 0. Write 1 or more."
        )
        raise EnvironmentPartError(what, code="option-not-accepted")
    limit = options.get("time_limit_s", TIME_LIMIT_S)
    _check_limit(ENVIRONMENT_KIND, found, limit)
    if "time_limit_s" in parameters:
        limit *= 4
    else:
        options.pop("time_limit_s", None)
    chosen = Found(found.label, found.target, options)
    options = ENVIRONMENT_KIND.checked_options(chosen, parameters.values(), _annotated(found.target))
    make = partial(found.target, **options)
    try:
        made = make()
    except Exception as error:
        what = f"environment {found.label!r} cannot be made: {type(error).__name__}: {error}"
        raise EnvironmentPartError(what, code="failed-constructor") from error
    kind = type(made)
    if not callable(getattr(kind, "reset", None)):
        what = f"environment {found.label!r} has no method reset, so that no row can begin."
        raise EnvironmentPartError(f"{what} Write def reset(self, **row).", code="no-reset")
    if twice := sorted(set(functions) & {name for name, _ in inspect.getmembers(kind, inspect.isfunction)}):
        what = f"{', '.join(twice)} is both a tool and a method of environment {found.label!r}. Rename one of them."
        raise EnvironmentPartError(what, code="tool-twice")
    return environment_class(make, made, limit, functions, at_once)


def _tool(spec: PartSpec) -> Callable[..., Any]:
    found = TOOL_KIND.find(spec)
    limit = found.options.get("time_limit_s", TIME_LIMIT_S)
    _check_limit(TOOL_KIND, found, limit)
    if unknown := [name for name in found.options if name != "time_limit_s"]:
        what = f"tool {found.label!r} has no option {unknown[0]!r}. Its option: time_limit_s."
        raise EnvironmentPartError(what, code="unknown-option")
    target = found.target
    if not inspect.isfunction(target) or "." in target.__qualname__:
        what = f"tool {found.label!r} is not a function of a module, by which a worker process finds it. Write one."
        raise EnvironmentPartError(what, code="not-a-function")
    return in_worker(target, limit)


def _check_limit(kind: Kind, found: Found, limit: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit) or limit <= 0:
        what = f"{kind.name} {found.label!r}: time_limit_s = {limit!r} is not a number of seconds above 0. Write one."
        raise kind.error(what, code="option-not-accepted")


def _annotated(target: Any) -> Any:
    return getattr(target, "__init__", target) if isinstance(target, type) else target


def tools_of(kind: type[RowEnvironment]) -> list[str]:
    """The names of what a policy may call."""
    return sorted(kind._tools)


def has_reward(kind: type[RowEnvironment]) -> bool:
    """Whether an environment judges its rows."""
    return kind._has_reward


def trial_problem(kind: type[RowEnvironment], rows: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with an environment on a few of its rows; empty where nothing is.

    It is reset for up to eight of ``rows``, spread over all; each tool is called with ``None`` for every argument,
    which it may refuse by an exception, that the policy then reads; it is asked for its reward.

    Args:
        rows: at least one.
    """
    environment = kind()
    chosen = range(0, len(rows), max(1, -(-len(rows) // MOST_ROWS)))
    for number in chosen:
        observation = environment.reset(**rows[number])
        if environment.failure is not None:
            return f"environment {kind.__name__}, row {number}: {environment.failure}"
        if not isinstance(observation, str | list | None):
            what = f"reset returned {observation!r:.80} of type {type(observation).__name__}"
            return f"environment {kind.__name__}, row {number}: {what}. Return a text for the prompt, or nothing."
    for name in tools_of(kind):
        tool = getattr(environment, name)
        required = [p.name for p in inspect.signature(tool).parameters.values() if p.default is p.empty]
        environment.reset(**rows[0])
        with contextlib.suppress(Exception):  # a refusal, which the policy reads
            tool(**dict.fromkeys(required))
        if environment.failure is not None:
            given = ", ".join(f"{each}=None" for each in required)
            return (
                f"environment {kind.__name__}, {name}({given}): {environment.failure}. A policy writes such calls: "
                "raise an error that it can read, a ValueError, and in time."
            )
    if has_reward(kind):
        environment.reset(**rows[0])
        score = environment._score()
        if environment.failure is not None or (score is not None and not math.isfinite(score)):
            return f"environment {kind.__name__}: {environment.failure or f'get_reward returned {score}'}"
    return ""

"""Environments and tools by name, as run files write them, built and tried before a model is loaded."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evenkeel.rewards.environments.row_environment import RowEnvironment, environment_class
from evenkeel.rewards.environments.shipped import ENVIRONMENTS, TOOLS
from evenkeel.rewards.environments.user_objects import Function, Host, Objects
from evenkeel.rewards.registry import Found, Kind, PartError, PartSpec
from evenkeel.rewards.verifier import Seconds

MOST_ROWS = 8

ENVIRONMENT_KIND = Kind("environment", lambda: ENVIRONMENTS)
TOOL_KIND = Kind("tool", lambda: TOOLS)


class Tools:
    """The environment of a row that has tools and nothing else."""


def build_environment(spec: PartSpec | None, tools: Sequence[PartSpec] = ()) -> type[RowEnvironment]:
    """The class of environments that ``spec`` names, with ``tools`` in addition to its own.

    Args:
        spec: a name, ``package.module:Class``, ``{name: …, option: …}`` or a class; ``None`` = tools alone. One
            object is made for each row of a batch, and reset for the next batch. ``time_limit_s`` (30) limits each
            call of it; if the class has an option of that name, it gets the option, and the limit is four times that.
        tools: functions by name, ``package.module:function``, or ``{name: …, time_limit_s: …}``.

    Raises:
        PartError: an unknown name, a failing import, a wrong option or method.
    """
    found = None if spec is None else ENVIRONMENT_KIND.find(spec)
    kind = Tools if found is None else found.target
    functions: dict[str, tuple[Callable[..., Any], Host]] = {}
    for function, host in map(_tool, tools):
        if function.__name__ in functions or hasattr(kind, function.__name__):
            raise PartError(f"two tools have the name {function.__name__}. Rename one.", code="tool-twice")
        functions[function.__name__] = function, host
    if found is None:
        return environment_class(Tools, None, functions)
    if not isinstance(kind, type) or not callable(getattr(kind, "reset", None)):
        what = f"environment {found.label!r} is not a class with a method reset. Write def reset(self, **row)."
        raise PartError(what, code="no-reset")
    parameters = inspect.signature(kind).parameters
    given = {name: value for name, value in found.options.items() if name == "time_limit_s"}
    own = {name: value for name, value in found.options.items() if name in parameters or name not in given}
    seconds = _time_limit(ENVIRONMENT_KIND, Found(found.label, kind, given))
    longer = 4 if "time_limit_s" in parameters else 1
    wanted = Found(found.label, kind, own)
    options = ENVIRONMENT_KIND.checked_options(wanted, parameters.values(), found.target.__init__)
    return environment_class(kind, Host(Objects(partial(kind, **options)), longer * seconds), functions)


def _time_limit(kind: Kind, found: Found) -> float:
    def limits(*, time_limit_s: Seconds = 30.0) -> float:
        return time_limit_s

    return limits(**kind.checked_options(found, inspect.signature(limits).parameters.values(), limits))


def _tool(spec: PartSpec) -> tuple[Callable[..., Any], Host]:
    found = TOOL_KIND.find(spec)
    if not inspect.isfunction(found.target):
        raise PartError(f"tool {found.label!r} is not a function.", code="not-a-function")
    return found.target, Host(Function(found.target), _time_limit(TOOL_KIND, found))


def has_reward(kind: type[RowEnvironment]) -> bool:
    """True if an environment scores its rows."""
    return "get_reward" in kind._control


def trial_problem(kind: type[RowEnvironment], parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The first problem of an environment on a few of its rows; empty if there is none.

    It is reset for up to eight rows of each part, spread over all, and asked once for its reward.

    Args:
        parts: label → rows; at least one row in all.
    """
    environment = kind()
    for label, rows in parts.items():
        for number in range(0, len(rows), max(1, -(-len(rows) // MOST_ROWS))):
            environment.reset(**rows[number])
            if environment.failure is not None:
                return f"{label}: environment {kind.__name__}, row {number}: {environment.failure}"
    environment._asked("get_reward")
    return "" if environment.failure is None else f"environment {kind.__name__}: {environment.failure}"

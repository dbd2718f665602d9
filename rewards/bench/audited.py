"""The audited reward function in a worker process, called with one case or with a batch.

Its parent never imports it: a module that hangs or ends its process costs only a worker. Its output is discarded.
"""

import asyncio
import inspect
import os
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from evenkeel.rewards.registry import Kind
from evenkeel.rewards.user_verifiers.trl_function import AT_START
from evenkeel.rewards.verifier import Verifier, as_verdict

_TRAINERS = {
    "trainer_state": AT_START,
    "log_extra": lambda column, values: None,
    "log_metric": lambda name, value: None,
}
"""Arguments that TRL passes in addition to the rows."""


def answers_of(named: str) -> Callable[[dict[str, Any] | None], dict[str, Any]]:
    """The function of that name, wrapped to take and return JSON.

    ``None`` asks for its signature: ``parameters`` (name → whether it must be given), ``any`` (it has **kwargs)
    and ``verifier`` (it is one of ours). Everything else is a call: ``arguments``, and ``count``, the number
    of rewards to return; ``None`` for verl's, which scores a single completion. The answer holds ``rewards``
    or ``fault``, and ``seconds``.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    function = _loaded(named)
    taken = _described(function)
    hooks = {name: value for name, value in _TRAINERS.items() if taken["any"] or name in taken["hooks"]}
    loop = asyncio.new_event_loop()

    def called(item: dict[str, Any] | None) -> dict[str, Any]:
        if item is None:
            return taken
        arguments, count = item["arguments"], item["count"]
        rewards: list[float | None] = []
        fault, started = "", time.perf_counter()
        try:
            returned = function(**arguments, **({} if count is None else hooks))
            if isinstance(returned, Awaitable):
                returned = loop.run_until_complete(returned)
            rewards, fault = _rewards(returned, count)
        except BaseException as error:  # noqa: BLE001 — any exception is a finding
            place = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"raised {type(error).__name__}: {error!s:.200} ({Path(place.filename).name}:{place.lineno})"
        seconds = time.perf_counter() - started
        return {"rewards": rewards, "fault": fault, "seconds": seconds}

    return called


def _loaded(named: str) -> Callable[..., Any]:
    """The function for ``named``, a verifier's name or ``module:function``."""
    found: Any = Kind("verifier", dict).find(named).target if ":" in named else None
    is_ours = found is None or isinstance(found, Verifier) or (inspect.isclass(found) and issubclass(found, Verifier))
    if not is_ours and list(inspect.signature(found).parameters)[:2] != ["completion", "reference"]:
        return found  # type: ignore[no-any-return]
    from evenkeel.rewards.bench.built_in import BUILT_IN  # most audits are of other functions, and need none of these
    from evenkeel.rewards.parts import build_verifier
    from evenkeel.rewards.reward_function import RewardFunction

    spec = found or (BUILT_IN[named][0] if named in BUILT_IN else named)
    function = RewardFunction(build_verifier(spec), named.rpartition(":")[2])
    function._bounded = function.verifier  # it runs in this process, which has limits of its own
    return function


def _described(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    named = {p.name: p.default is p.empty for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    return {
        "parameters": {name: needed for name, needed in named.items() if name not in _TRAINERS},
        "hooks": [*_TRAINERS.keys() & named],
        "any": any(p.kind is p.VAR_KEYWORD for p in parameters),
        "verifier": isinstance(getattr(function, "verifier", None), Verifier),
    }


def _rewards(returned: Any, count: int | None) -> tuple[list[float | None], str]:
    """The rewards, or what is wrong with the value returned."""
    try:
        if count is None:
            returned = [returned["score"] if isinstance(returned, dict) else returned]
        rewards = [as_verdict(reward).score for reward in returned]
    except (TypeError, ValueError, LookupError) as error:
        return [], f"returned {returned!r:.60}: {type(error).__name__}: {error!s:.80}"
    if len(rewards) != (count or 1):
        return [], f"returned {len(rewards)} rewards for {count} completions"
    return rewards, ""

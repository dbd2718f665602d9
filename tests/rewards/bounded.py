"""Calls that the kernel ends after three seconds of CPU time, where a linear function needs some tenths of one.

No clock of the machine is read, so a busy one decides nothing; what is quadratic in a long text is cut off and says so.
"""

import pkgutil
from typing import Any

from evenkeel.rewards import build_verifier
from evenkeel.rewards.isolation.workers import WorkerPool

_POOL = WorkerPool("tests.rewards.bounded:_done", cpu_seconds=3, wall_seconds=600, workers=1)


def ends_in_bounded_time(function: str, text: str) -> bool:
    """Whether ``package.module:function`` of ``text`` returns."""
    return _POOL.map([["function", function, text]])[0].status == "done"


def score_in_bounded_time(verifier: str, completion: str, reference: Any) -> float | str | None:
    """The score that the verifier of this name gives, or how the call ended without one."""
    (outcome,) = _POOL.map([["verifier", verifier, completion, reference]])
    return outcome.value if outcome.status == "done" else outcome.status


def _done(item: list[Any]) -> float | None:
    kind, name, *arguments = item
    if kind == "verifier":
        return build_verifier(name)(*arguments).score
    pkgutil.resolve_name(name)(*arguments)
    return None

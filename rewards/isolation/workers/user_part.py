"""Users' code, called in a process of its own, or in this one if no other process can import it."""

import base64
import io
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from evenkeel.rewards.isolation.workers.pool import WorkerPool, WorkerResult
from evenkeel.rewards.isolation.workers.worker_process import WorkerStartError
from evenkeel.rewards.registry import ORIGINS


class UserPart:
    """A function that uses a user's part, called in one process that is kept from call to call.

    A crash, ``os._exit`` and a held interpreter end that process alone, and the next call starts another. A function
    that cannot be sent there, because it can be neither imported by name nor pickled (a closure, a function of a script
    or notebook, an object that holds a connection), is called in this process, without limits.

    Args:
        function: item → parts of its result, which in the other process have to be JSON.
    """

    def __init__(self, function: Callable[[Any], Iterable[Any]]) -> None:
        self.function = function

    @cached_property
    def pool(self) -> WorkerPool | None:
        """Its process; equal parts share one. ``None`` = it is called in this process."""
        try:
            pickled = _pickled(self.function)
        except Exception:  # noqa: BLE001 — whatever pickling an object of a user's raises
            return None
        if b"__main__" in pickled:  # the process has another one
            return None
        return WorkerPool(
            f"{__name__}:received", argument=base64.b64encode(pickled).decode(), cpu_seconds=0, workers=1, users=True
        )

    def call(self, item: Any, wall_seconds: float, on_part: Callable[[Any], object]) -> WorkerResult:
        """Call the function on ``item``, and ``on_part`` on each part of the result; returns how the call ended.

        Exceptions of a function that is called in this process are raised; those of another process, also that it
        cannot start, are the result's ``detail``.
        """
        if self.pool is None:
            for part in self.function(item):
                on_part(part)
            return WorkerResult(None, "done")
        try:
            return self.pool.map([base64.b64encode(_pickled(item)).decode()], wall_seconds, on_part)[0]
        except WorkerStartError as error:
            why = str(error).strip().splitlines()[-1]
            return WorkerResult(None, "raised", detail=f"its process cannot start: {why}")


class _ByOrigin(pickle.Pickler):
    """Pickles a part of `ORIGINS` as the call that makes it again."""

    def reducer_override(self, part: Any) -> Any:
        return ORIGINS[id(part)][1] if id(part) in ORIGINS else NotImplemented


def _pickled(value: Any) -> bytes:
    """``value`` for the process. Pickled in this direction alone: the trainer does not trust the process."""
    written = io.BytesIO()
    _ByOrigin(written).dump(value)
    return written.getvalue()


def received(argument: str) -> Callable[[str], Iterator[Any]]:
    """In the process: the function that was sent, which maps pickled items to parts of their results."""
    function = pickle.loads(base64.b64decode(argument))
    return lambda item: iter(function(pickle.loads(base64.b64decode(item))))

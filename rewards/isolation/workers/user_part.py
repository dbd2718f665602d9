"""What a user wrote, called in a process of its own; one that no other process can import is called in this one."""

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
    """A function that uses a user's part, in one process that is kept from call to call, where it can be sent there.

    It can where every part of it can be imported by its name, or pickled. A crash, ``os._exit`` and a held interpreter
    end that process alone, and the next call starts another. A closure, a function of a script or notebook and an
    object that holds a connection are called here, without limits.

    Args:
        function: from an item to the parts of its result; in the process what it yields has to be of JSON.
    """

    def __init__(self, function: Callable[[Any], Iterable[Any]]) -> None:
        self.function = function

    @cached_property
    def pool(self) -> WorkerPool | None:
        """Its process; equal parts share one. ``None`` = it is called here."""
        try:
            pickled = _pickled(self.function)
        except Exception:  # noqa: BLE001 — whatever pickling an object of a user's raises
            return None
        if b"__main__" in pickled:  # the process has another one
            return None
        return WorkerPool(
            f"{__name__}:received",
            argument=base64.b64encode(pickled).decode(),
            cpu_seconds=0,
            workers=1,
            users=True,
        )

    def call(self, item: Any, wall_seconds: float, on_part: Callable[[Any], object]) -> WorkerResult:
        """Hand each part of the result to ``on_part``, and say how the call ended.

        Where the part is called here its exceptions are raised; else they are the result's ``detail``, as is a process
        that cannot start.
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
    """Sends a part that a run file names by that name, and one that is built of it by how it is built."""

    def reducer_override(self, part: Any) -> Any:
        return ORIGINS[id(part)][1] if id(part) in ORIGINS else NotImplemented


def _pickled(value: Any) -> bytes:
    """``value`` for the process. Pickled in this direction alone: it trusts the trainer, and the trainer not it."""
    written = io.BytesIO()
    _ByOrigin(written).dump(value)
    return written.getvalue()


def received(argument: str) -> Callable[[str], Iterator[Any]]:
    """In the process: the function that was sent, from sent items to the parts of their results."""
    function = pickle.loads(base64.b64decode(argument))
    return lambda item: iter(function(pickle.loads(base64.b64decode(item))))

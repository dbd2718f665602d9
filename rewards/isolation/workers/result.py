"""What became of one item that a worker judged."""

from dataclasses import dataclass, field
from typing import Any, Literal

WorkerStatus = Literal["done", "raised", "cpu_limit", "wall_limit", "memory_limit", "died"]


@dataclass(frozen=True)
class WorkerResult:
    """The value that the target returned for an item, or why there is none.

    Attributes:
        value: what the target returned, through JSON; ``None`` unless ``status`` is ``done``.
        status: ``done``; ``raised`` an exception; ended at its ``cpu_limit``; twice at its ``wall_limit``, each time on
            a fresh count: the machine had no time for it, or it slept; twice at its ``memory_limit``; twice ``died`` of
            something else, such as a stack overflow in C.
        seconds: wall time from when the worker had the item, of the last try. No part of equality.
        detail: the exception or the signal, in words; empty when done.
    """

    value: Any
    status: WorkerStatus
    seconds: float = field(compare=False, default=0.0)
    detail: str = ""

    @property
    def done(self) -> bool:
        """Whether the target returned a value."""
        return self.status == "done"

    @property
    def killed(self) -> bool:
        """Whether the item was cut off rather than judged."""
        return self.status not in ("done", "raised")

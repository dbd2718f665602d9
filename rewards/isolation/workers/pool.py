"""A pool of worker processes, as a value: it can be compared, hashed and pickled; its workers belong to the process."""

import atexit
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.isolation.stacks import SOURCES
from rewards.isolation.workers.crew import Crew, WorkerLimits
from rewards.isolation.workers.result import WorkerResult

_lock = threading.Lock()  # of the table alone; each crew has its own for its batches
_crews: dict["WorkerPool", Crew] = {}
MOST_WORKERS = 16


@dataclass(frozen=True)
class WorkerPool:
    """A function that judges items in separate processes, each item within limits of CPU time, wall time and memory.

    Workers are started by ``python -m`` when the first batch comes: never by fork, and without importing the caller's
    ``__main__``. Equal pools share their workers; a forked or unpickled copy starts its own. They end with the process,
    however it ends. The function is trusted; what it is called with is not.

    A worker that ends at a limit is replaced and the batch goes on. Which worker judges an item, and how many there
    are, changes no result. One that ends for another reason than its CPU time is tried a second time.

    Attributes:
        target: ``package.module:function`` of one argument; it takes and returns what JSON can write.
        cpu_seconds: of user and system time per item, kept by the kernel, also inside C.
        wall_seconds: per item, from when a ready worker has it. A backstop for a target that sleeps; an item that
            computes needs it only where the machine is starved. So it is to be several times ``cpu_seconds``.
        memory_bytes: address space of a worker.
        workers: at most so many; 0 = one for each core that this process may use, divided by the ranks of this machine
            (``LOCAL_WORLD_SIZE``), at most 16.
        warm_up: items judged before a worker is ready, so that no item pays for imports.
        start_seconds: wall time until a worker must be ready.
    """

    target: str
    cpu_seconds: float = 5.0
    wall_seconds: float = 60.0
    memory_bytes: int = 2 << 30
    workers: int = 0
    warm_up: tuple[Any, ...] = ()
    start_seconds: float = 300.0

    def __post_init__(self) -> None:
        """Refuse limits that cannot be kept."""
        if ":" not in self.target:
            raise ValueError(f"target = {self.target!r} names no function. Write package.module:function.")
        if min(self.cpu_seconds, self.memory_bytes, self.start_seconds) <= 0 or self.workers < 0:
            raise ValueError(
                f"cpu_seconds = {self.cpu_seconds}, memory_bytes = {self.memory_bytes}, start_seconds = "
                f"{self.start_seconds} and workers = {self.workers} cannot be kept. Write limits above 0."
            )
        if self.wall_seconds < self.cpu_seconds:
            raise ValueError(
                f"wall_seconds = {self.wall_seconds} end before cpu_seconds = {self.cpu_seconds} can be used up, so a "
                "busy machine would decide results. Write several times cpu_seconds."
            )

    def map(self, items: Sequence[Any]) -> list[WorkerResult]:
        """Judge ``items``; one result each, in their order.

        Raises:
            WorkerStartError: a worker does not become ready, with what it said; one killed by a signal is started three
                times before.
        """
        if not items:
            return []
        with _lock:
            if self not in _crews:
                _crews[self] = Crew(
                    self._settings(), WorkerLimits(self._num_workers(), self.wall_seconds, self.start_seconds)
                )
            crew = _crews[self]
        return crew.judge(items)

    def close(self) -> None:
        """End the workers of this pool and of those equal to it, in this process, after the batch under way."""
        with _lock:
            crew = _crews.get(self)
        if crew is not None:
            crew.close()

    def _num_workers(self) -> int:
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        return self.workers or min(MOST_WORKERS, max(1, len(os.sched_getaffinity(0)) // ranks))

    def _settings(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "warm_up": self.warm_up,
            "cpu_seconds": self.cpu_seconds,
            "memory_bytes": self.memory_bytes,
        }


def _stacks() -> Iterator[str]:
    for crew in list(_crews.values()):
        yield from crew.stacks()


def _close_all() -> None:
    for pool in list(_crews):
        pool.close()


def _forget_the_parents_workers() -> None:
    """In a forked child: the workers and the locks' holders are the parent's; killing or waiting would be wrong."""
    global _lock
    _crews.clear()
    _lock = threading.Lock()


atexit.register(_close_all)
SOURCES.append(_stacks)
os.register_at_fork(after_in_child=_forget_the_parents_workers)

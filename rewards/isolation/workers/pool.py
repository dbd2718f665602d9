"""A pool of worker processes that can be compared, hashed and pickled; the workers belong to the process."""

import atexit
import os
import selectors
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from evenkeel.rewards.isolation.workers.worker_process import WorkerMessageError, WorkerProcess, WorkerStartError

WorkerStatus = Literal["done", "raised", "cpu_limit", "wall_limit", "memory_limit", "died"]

START_SECONDS = 300.0
"""Time limit for a worker to become ready."""
ITEMS_PER_WORKER = 2000
"""Items after which a worker is replaced: the caches of a computer algebra system grow."""

# Of the table alone; each group has its own for its batches.
_lock = threading.Lock()
_groups: dict["WorkerPool", "WorkerGroup"] = {}
_starter = ThreadPoolExecutor(1, thread_name_prefix="worker-starter")
"""One thread starts all workers: a worker is killed when the thread that started it ends."""


@dataclass(frozen=True)
class WorkerResult:
    """The value that the target returned for an item, or why there is none.

    Attributes:
        value: what the target returned, through JSON; ``None`` unless ``status`` is ``done``.
        status: ``done``; ``raised`` an exception; ended at its ``cpu_limit``, ``wall_limit`` or ``memory_limit``, or
            ``died`` of something else, such as a stack overflow in C. The last three after two tries, except for a
            user's function.
        seconds: wall time of the last try, from when the worker had the item. Ignored by ``==``.
        detail: the exception or the signal, as a sentence; empty when done.
    """

    value: Any
    status: WorkerStatus
    seconds: float = field(compare=False, default=0.0)
    detail: str = ""

    @property
    def done(self) -> bool:
        """True if the target returned a value."""
        return self.status == "done"

    @property
    def killed(self) -> bool:
        """True if the item was cut off rather than scored."""
        return self.status not in ("done", "raised")


@dataclass(frozen=True)
class WorkerPool:
    """A function that scores items in separate processes, each item within limits of CPU time, wall time and memory.

    Workers are new interpreters, started when the first batch comes: never by fork, and without importing the caller's
    ``__main__``. Equal pools share their workers; a forked or unpickled copy starts its own. They end with the process,
    however it ends. The function is trusted; its items are not.

    A worker that ends at a limit is replaced and the batch goes on. Results do not depend on the number of workers.

    Attributes:
        target: ``package.module:function`` of one argument; it takes and returns what JSON can write.
        argument: if given, the target is called with it once in each worker and returns the function that scores items.
        cpu_seconds: user and system time per item, enforced by the kernel, also inside C; 0 = no limit.
        wall_seconds: per item, from when a ready worker is sent it. A backstop for a target that sleeps; an item that
            computes needs it only where the machine is starved. So make it several times ``cpu_seconds``.
        memory_bytes: what a worker may take beyond what it holds when it is ready; not enforced for a user's function.
        workers: at most; 0 = one for each core that this process may use, divided by the ranks of this machine
            (``LOCAL_WORLD_SIZE``), at most 16.
        warm_up: items scored before a worker is ready, so that no item pays for imports.
        users: the function is a user's. Its workers have the whole environment and print to the terminal, are not
            replaced after `ITEMS_PER_WORKER`, and try no item twice.
    """

    target: str
    argument: str | None = None
    cpu_seconds: float = 5.0
    wall_seconds: float = 60.0
    memory_bytes: int = 2 << 30
    workers: int = 0
    warm_up: tuple[Any, ...] = ()
    users: bool = False

    def map(
        self,
        items: Sequence[Any],
        wall_seconds: float | None = None,
        on_part: Callable[[Any], object] = lambda part: None,
    ) -> list[WorkerResult]:
        """Score ``items``; one result each, in their order.

        Args:
            wall_seconds: of these items, in place of the pool's.
            on_part: called with each value that a target yields, as soon as it arrives.

        Raises:
            WorkerStartError: a worker does not become ready; with its output.
        """
        if not items:
            return []
        with _lock:
            group = _groups.setdefault(self, WorkerGroup(self))
        return group.judge(items, self.wall_seconds if wall_seconds is None else wall_seconds, on_part)

    def close(self) -> None:
        """End the workers of this pool and of those equal to it, in this process, after the batch under way."""
        with _lock:
            group = _groups.get(self)
        if group is not None:
            group.close()


class WorkerGroup:
    """The running workers of a pool. One batch at a time; another thread's waits."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self._most = pool.workers or min(16, max(1, len(os.sched_getaffinity(0)) // ranks))
        names = ("target", "argument", "cpu_seconds", "memory_bytes", "warm_up", "users")
        self._settings = {name: getattr(pool, name) for name in names}
        self._idle: list[WorkerProcess] = []  # the one used last at the end
        # The index of its item; None while it starts.
        self._busy: dict[WorkerProcess, int | None] = {}
        self._lock = threading.Lock()

    def judge(self, items: Sequence[Any], wall_seconds: float, on_part: Callable[[Any], object]) -> list[WorkerResult]:
        """One result per item, in order.

        Raises:
            WorkerStartError: a worker does not become ready; all workers are ended first.
        """
        results: dict[int, WorkerResult] = {}
        waiting, second_try = deque(range(len(items))), set[int]()
        with self._lock:
            try:
                while len(results) < len(items):
                    self._dispatch(items, waiting, second_try)
                    self._start_missing(len(waiting))
                    for index, result in self._next_results(wall_seconds, on_part):
                        may_pass = result.status in ("wall_limit", "memory_limit", "died") and not self._pool.users
                        if may_pass and index not in second_try:
                            # A starved machine, or remains of earlier items in the worker.
                            second_try.add(index)
                            waiting.append(index)
                        else:
                            results[index] = result
            # Also Ctrl-C: a result still to come would be read as one of the next batch.
            except BaseException:
                self._end()
                raise
        return [results[index] for index in range(len(items))]

    def close(self) -> None:
        """End every worker. The group can be used again."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        for worker in [*self._idle, *self._busy]:
            worker.end()
        self._idle.clear()
        self._busy.clear()

    def _dispatch(self, items: Sequence[Any], waiting: deque[int], second_try: set[int]) -> None:
        while waiting and self._idle:
            worker = self._idle.pop()
            # The second try is on a fresh worker.
            is_used = waiting[0] in second_try and worker.num_items > 0
            if is_used or not worker.is_silent:
                worker.end()
                continue
            self._busy[worker] = index = waiting.popleft()
            worker.num_items += 1
            worker.send(items[index])

    def _start_missing(self, num_waiting: int) -> None:
        ready_soon = len(self._idle) + sum(index is None for index in self._busy.values())
        room = self._most - len(self._busy) - len(self._idle)
        for _ in range(min(room, num_waiting - ready_soon)):
            self._busy[_starter.submit(WorkerProcess, self._settings).result()] = None

    def _next_results(
        self, wall_seconds: float, on_part: Callable[[Any], object]
    ) -> Iterator[tuple[int, WorkerResult]]:
        """Wait until a worker has sent something, has ended, or is late; yield the results that are then known."""

        def deadline(worker: WorkerProcess) -> float:
            return worker.started + (START_SECONDS if self._busy[worker] is None else wall_seconds)

        with selectors.PollSelector() as selector:
            for worker in self._busy:
                selector.register(worker, selectors.EVENT_READ | (selectors.EVENT_WRITE if worker.has_unsent else 0))
            left = min(map(deadline, self._busy)) - time.monotonic()
            selected = selector.select(min(max(0.0, left), 86_400.0))
            ready = {key.fileobj: events for key, events in selected}
        for worker, index in list(self._busy.items()):
            result = None
            if ready.get(worker, 0) & selectors.EVENT_WRITE:
                worker.send_more()
            if ready.get(worker, 0) & selectors.EVENT_READ:
                result = self._on_messages(worker, on_part)
            if worker in self._busy and time.monotonic() >= deadline(worker):
                why = f"without a result after {time.monotonic() - worker.started:.1f} s of wall time"
                result = self._on_end(worker, why, "wall_limit")
            if result is not None and index is not None:
                yield index, result

    def _on_messages(self, worker: WorkerProcess, on_part: Callable[[Any], object]) -> WorkerResult | None:
        try:
            for message in worker.receive():
                if "part" not in message:
                    return self._on_last_message(worker, message)
                on_part(message["part"])
        except EOFError:
            return self._on_end(worker)
        except WorkerMessageError as error:
            return self._on_end(worker, f"because it sent {error}")
        return None

    def _on_last_message(self, worker: WorkerProcess, message: dict[str, Any]) -> WorkerResult | None:
        if self._busy[worker] is not None and message.get("status") not in ("done", "raised", "memory_limit"):
            raise WorkerMessageError("a message without a status")
        if self._busy.pop(worker) is None:
            if not message.get("ready"):
                worker.end()
                raise WorkerStartError(f"a worker for {self._pool.target} cannot start:\n{message.get('detail')}")
            self._idle.insert(0, worker)
            return None
        is_old = worker.num_items >= ITEMS_PER_WORKER and not self._pool.users
        if message["status"] == "memory_limit" or is_old:
            worker.end()
        else:
            self._idle.append(worker)
        value, status, detail = message.get("value"), message["status"], str(message.get("detail"))
        return WorkerResult(value, status, time.monotonic() - worker.started, detail)

    def _on_end(self, worker: WorkerProcess, why: str = "", status: WorkerStatus = "died") -> WorkerResult:
        """The result of a worker that has ended, or, with ``why``, is ended now for what it sent or did not send."""
        seconds, code = time.monotonic() - worker.started, worker.end()
        why = why or worker.exit_reason()
        if self._busy.pop(worker) is None:
            said = f"a worker for {self._pool.target} ended {why} while it started, after {seconds:.0f} s:"
            raise WorkerStartError(f"{said}\n{worker.log_tail()}")
        return WorkerResult(None, "cpu_limit" if code == -signal.SIGPROF else status, seconds, why)


def _close_all() -> None:
    for pool in list(_groups):
        pool.close()


def _forget_the_parents_workers() -> None:
    """In a forked child: workers and holders of locks are the parent's, so nothing is killed or waited for."""
    global _lock, _starter
    _groups.clear()
    _lock = threading.Lock()
    _starter = ThreadPoolExecutor(1, thread_name_prefix="worker-starter")


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_the_parents_workers)

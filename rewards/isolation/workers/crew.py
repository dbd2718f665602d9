"""The running workers of a pool, and the loop that keeps them busy, within their limits and replaced."""

import selectors
import signal
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rewards.isolation.workers.process import WorkerProcess, WorkerStartError
from rewards.isolation.workers.result import WorkerResult, WorkerStatus

ITEMS_PER_WORKER = 2000
"""After these a worker is replaced: the caches of a computer algebra system grow."""
START_TRIES = 3
"""Starts of one worker that may end by a signal: an out-of-memory killer's choice must not end a batch."""


@dataclass(frozen=True)
class WorkerLimits:
    """What a crew holds its workers to; see `rewards.isolation.workers.WorkerPool`."""

    workers: int
    wall_seconds: float
    start_seconds: float


class Crew:
    """Workers with the same settings. One batch at a time; another thread's waits."""

    def __init__(self, settings: dict[str, Any], limits: WorkerLimits) -> None:
        self._settings = settings
        self._limits = limits
        self._idle: list[WorkerProcess] = []
        self._busy: dict[WorkerProcess, int | None] = {}  # the index of its item; None while it starts
        self._lock = threading.Lock()
        self._starter = _starter_thread()

    def judge(self, items: Sequence[Any]) -> list[WorkerResult]:
        """One result per item, in order.

        Raises:
            WorkerStartError: a worker does not become ready; all workers are ended before.
        """
        with self._lock:
            return self._judged(items)

    def stacks(self) -> list[str]:
        """Where each busy worker is; asked by another thread than that which waits for them.

        One that starts is not asked: it would end by the signal.
        """
        said = [worker.stack() if index is not None else "starting" for worker, index in list(self._busy.items())]
        return [f"{self._settings['target']}\n{stack}" for stack in said]

    def close(self) -> None:
        """End every worker, and the thread that started them. The crew can be used again."""
        with self._lock:
            self._end()
            self._starter.shutdown()
            self._starter = _starter_thread()

    def _judged(self, items: Sequence[Any]) -> list[WorkerResult]:
        results: dict[int, WorkerResult] = {}
        waiting, second_try = deque(range(len(items))), set[int]()
        try:
            while len(results) < len(items):
                self._hand_out(items, waiting, second_try)
                self._staff(len(waiting))
                for index, result in self._next_results():
                    if result.status in ("wall_limit", "memory_limit", "died") and index not in second_try:
                        second_try.add(index)  # a starved machine, or what earlier items had left in the worker
                        waiting.append(index)
                    else:
                        results[index] = result
        except BaseException:  # also Ctrl-C: an answer still under way would be read as that of the next batch
            self._end()
            raise
        return [results[index] for index in range(len(items))]

    def _end(self) -> None:
        for worker in [*self._idle, *self._busy]:
            worker.end()
        self._idle.clear()
        self._busy.clear()

    def _hand_out(self, items: Sequence[Any], waiting: deque[int], second_try: set[int]) -> None:
        while waiting and self._idle:
            worker = self._idle.pop()
            if waiting[0] in second_try and worker.num_items > 0:  # a second try is owed a worker without a past
                worker.end()
                continue
            self._busy[worker] = index = waiting.popleft()
            worker.num_items += 1
            worker.send(items[index])

    def _staff(self, num_waiting: int) -> None:
        starting = sum(index is None for index in self._busy.values())
        room = self._limits.workers - len(self._busy) - len(self._idle)
        for _ in range(min(room, num_waiting - len(self._idle) - starting)):
            self._start(1)

    def _start(self, start_try: int) -> None:
        worker = self._starter.submit(WorkerProcess, self._settings, start_try).result()
        self._busy[worker] = None

    def _next_results(self) -> list[tuple[int, WorkerResult]]:
        """Wait until a worker has said something, or has ended, or is late; take what that decides."""
        with selectors.DefaultSelector() as selector:
            for worker in self._busy:
                selector.register(worker, selectors.EVENT_READ)
            soonest = min(self._deadline(worker) for worker in self._busy)
            heard = {key.fileobj for key, _ in selector.select(max(0.0, soonest - time.monotonic()))}
        found = []
        for worker in list(self._busy):
            index = self._busy[worker]
            if worker in heard:
                result = self._heard(worker)
            elif time.monotonic() >= self._deadline(worker):
                result = self._late(worker)
            else:
                continue
            if result is not None and index is not None:
                found.append((index, result))
        return found

    def _deadline(self, worker: WorkerProcess) -> float:
        allowed = self._limits.start_seconds if self._busy[worker] is None else self._limits.wall_seconds
        return worker.started + allowed

    def _heard(self, worker: WorkerProcess) -> WorkerResult | None:
        try:
            message = worker.receive()
        except EOFError:
            return self._ended(worker)
        if message is None:
            return None
        starting = self._busy.pop(worker) is None
        if starting and not message["ready"]:
            worker.end()
            raise WorkerStartError(f"a worker for {self._settings['target']} cannot start:\n{message['detail']}")
        if not starting and (message["status"] == "memory_limit" or worker.num_items >= ITEMS_PER_WORKER):
            worker.end()
        else:
            self._idle.append(worker)
        if starting:
            return None
        return WorkerResult(message["value"], message["status"], time.monotonic() - worker.started, message["detail"])

    def _ended(self, worker: WorkerProcess) -> WorkerResult | None:
        seconds, code = time.monotonic() - worker.started, worker.end()
        if self._busy.pop(worker) is None:
            if code < 0 and worker.start_try < START_TRIES:
                self._start(worker.start_try + 1)
                return None
            raise WorkerStartError(
                f"a worker for {self._settings['target']} ended by {worker.exit_words()} before it was ready, at try "
                f"{worker.start_try}:\n{worker.last_words()}"
            )
        status: WorkerStatus = "cpu_limit" if code == -signal.SIGPROF else "died"
        return WorkerResult(None, status, seconds, worker.exit_words())

    def _late(self, worker: WorkerProcess) -> WorkerResult:
        seconds = time.monotonic() - worker.started
        worker.end()
        if self._busy.pop(worker) is None:
            raise WorkerStartError(
                f"a worker for {self._settings['target']} was not ready after {seconds:.0f} s:\n{worker.last_words()}"
            )
        return WorkerResult(None, "wall_limit", seconds, f"no result after {seconds:.1f} s of wall time")


def _starter_thread() -> ThreadPoolExecutor:
    """One thread that starts all workers and outlives them: a worker is killed when the thread that started it ends."""
    return ThreadPoolExecutor(1, thread_name_prefix="worker-starter")

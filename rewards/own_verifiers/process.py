"""The process in which a user's verifier judges that was declared picklable."""

import atexit
import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import re
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rewards.isolation.stacks import SOURCES, answered_stack
from rewards.own_verifiers.judging import judged_rows
from rewards.own_verifiers.traits import traits_of
from rewards.verifier import Verdict, Verifier

START_SECONDS = 120.0
"""For the imports of a new process; they are not the batch's time."""
MOST_FRAMES = 3
"""Of the stack at which a process crashed, the innermost."""

_Key = tuple[int, bytes]
_processes: dict[_Key, "VerifierProcess"] = {}
_spares: dict[_Key, "VerifierProcess"] = {}
_ended_before: set[_Key] = set()
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


class ProcessEndedError(RuntimeError):
    """The process ended at a row; the message says how."""


class VerifierProcess:
    """A started process that holds one verifier. Equal verifiers share it; it ends with the process that started it."""

    def __init__(self, key: _Key) -> None:
        self._key, self._is_ready = key, False
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._said = tempfile.NamedTemporaryFile()  # noqa: SIM115 — lives as long as the process
        arguments = theirs, key[1], self._said.name
        self._process = context.Process(target=_serve, args=arguments, daemon=True, name="own-verifier")
        self._process.start()
        theirs.close()

    @classmethod
    def of(cls, verifier: Verifier) -> "VerifierProcess":
        """The process of this verifier; where there is none, its spare one, or a new one.

        A verifier that crashed once crashes again, and a start takes seconds: from then on a spare process starts while
        the one before it judges.

        Raises ``RuntimeError`` where it cannot be started, and what pickling the verifier raises.
        """
        key = os.getpid(), pickle.dumps(verifier)
        if key not in _processes:
            spare = _spares.pop(key, None)
            if spare is not None and not spare._process.is_alive():
                spare.end()
                spare = None
            _processes[key] = spare or cls(key)
            _processes[key]._wait_until_ready()
            if key in _ended_before:
                _spares[key] = cls(key)
        return _processes[key]

    def judge(self, rows: Sequence[Any], latest: float, verdicts: list[Verdict]) -> None:
        """Append the verdicts of ``rows``, in their order, that are there by the time ``latest``.

        A process that is late is killed: nothing else ends what sleeps.

        Raises:
            ProcessEndedError: it ended by itself, at the row behind those that have verdicts.
        """
        try:
            self._connection.send(rows)
            for _ in rows:
                if not self._connection.poll(max(0.0, latest - time.monotonic())):
                    _ended_before.add(self._key)
                    self.end()
                    return
                verdicts.append(self._connection.recv())
        except (EOFError, OSError) as error:
            self._process.join(10.0)
            how = self._how_it_ended()
            _ended_before.add(self._key)
            self.end()
            raise ProcessEndedError(how) from error

    def stack(self) -> str:
        """Where its threads are, which it writes on SIGUSR1, also from inside C; while it starts that would end it."""
        if not self._is_ready:
            return f"process {self._process.pid} is starting"
        return answered_stack(self._process.pid, self._said)

    def _wait_until_ready(self) -> None:
        problem = f"its process was not ready after {START_SECONDS:.0f} s"
        try:
            if self._connection.poll(START_SECONDS):
                problem = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(10.0)
            problem = f"its process ended {self._how_it_ended()} before it was ready"
        if problem:
            self.end()
            raise RuntimeError(problem)
        self._is_ready = True

    def end(self) -> None:
        """Kill it; the next batch starts another."""
        for table in (_processes, _spares):
            if table.get(self._key) is self:
                del table[self._key]
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._said.close()

    def _how_it_ended(self) -> str:
        code = self._process.exitcode
        if code is None:
            return "and closed its channel"
        if code >= 0:
            return f"with exit code {code}, as by os._exit({code})"
        number = signal.Signals(-code)
        if number == signal.SIGKILL:
            return "by SIGKILL, which the kernel sends where the machine's memory runs out"
        frames = _FRAME.findall(Path(self._said.name).read_text("utf-8", "replace").rpartition("Fatal Python error")[2])
        places = [f"{function} ({Path(file).name}:{line})" for file, line, function in frames[:MOST_FRAMES]]
        return f"by {number.name}" + (f" in {', called by '.join(places)}" if places else "")


def _serve(connection: Connection, pickled: bytes, stacks: str) -> None:
    """Judge batches of rows until the other side is gone, one message a row as soon as it has its verdict."""
    said = Path(stacks).open("a")  # noqa: SIM115 — for as long as this lives
    faulthandler.register(signal.SIGUSR1, file=said)
    faulthandler.enable(file=said, all_threads=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trainer
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        verifier = pickle.loads(pickled)
        memory_mb = traits_of(verifier).memory_mb
        _limit_memory(memory_mb << 20)
    except BaseException as error:  # noqa: BLE001 — said on the other side
        connection.send(f"it cannot be made there: {type(error).__name__}: {error}")
        return
    connection.send("")

    def sent(_: int, verdict: Verdict) -> bool:
        if verdict.score is None and verdict.reason.startswith("the verifier failed: MemoryError"):
            reason = f"the verifier failed: the row took more than memory_mb = {memory_mb} of its process"
            verdict = replace(verdict, reason=reason, killed=True)
        connection.send(verdict)
        return True

    with contextlib.suppress(EOFError, OSError):
        while True:
            judged_rows(verifier, connection.recv(), sent)


def _limit_memory(more: int) -> None:
    """Let this process take so many bytes more: what it can write to, so that what is only reserved does not count."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        held = int(file.read().split()[5]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = held + more if hard == resource.RLIM_INFINITY else min(held + more, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _stacks() -> Iterator[str]:
    for (owner, _), process in list(_processes.items()):
        if owner == os.getpid():
            yield f"own verifier\n{process.stack()}"


def _end_all() -> None:
    for process in [*_processes.values(), *_spares.values()]:
        if process._key[0] == os.getpid():
            process.end()


atexit.register(_end_all)
SOURCES.append(_stacks)

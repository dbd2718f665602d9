"""The process in which a user's verifier judges that was declared picklable."""

import atexit
import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rewards.isolation.stacks import SOURCES, answered_stack
from rewards.own_verifiers.judging import judged_rows
from rewards.verifier import Verdict, Verifier

START_SECONDS = 120.0
"""For the imports of a new process; they are not the batch's time."""

_processes: dict[tuple[int, bytes], "VerifierProcess"] = {}


class ProcessEndedError(RuntimeError):
    """The process ended at a row; the message says how."""


class VerifierProcess:
    """A started process that holds one verifier. Equal verifiers share it; it ends with the process that started it."""

    def __init__(self, key: tuple[int, bytes]) -> None:
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
        """The process of this verifier, a new one where there is none.

        Raises ``RuntimeError`` where it cannot be started, and what pickling the verifier raises.
        """
        key = os.getpid(), pickle.dumps(verifier)
        if key not in _processes:
            _processes[key] = cls(key)
            _processes[key]._wait_until_ready()
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
                    self.end()
                    return
                verdicts.append(self._connection.recv())
        except (EOFError, OSError) as error:
            raise ProcessEndedError(self._ended()) from error

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
            problem = f"its process ended {self._ended()} before it was ready"
        if problem:
            self.end()
            raise RuntimeError(problem)
        self._is_ready = True

    def end(self) -> None:
        """Kill it; the next batch starts another."""
        _processes.pop(self._key, None)
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._said.close()

    def _ended(self) -> str:
        self._process.join(10.0)
        code = self._process.exitcode
        self.end()
        if code is None:
            return "and closed its channel"
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _serve(connection: Connection, pickled: bytes, stacks: str) -> None:
    """Judge batches of rows until the other side is gone, one message a row as soon as it has its verdict."""
    faulthandler.register(signal.SIGUSR1, file=Path(stacks).open("a"))  # noqa: SIM115 — for as long as this lives
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trainer
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        verifier = pickle.loads(pickled)
    except BaseException as error:  # noqa: BLE001 — said on the other side
        connection.send(f"it cannot be made there: {type(error).__name__}: {error}")
        return
    connection.send("")
    with contextlib.suppress(EOFError, OSError):
        while True:
            judged_rows(verifier, connection.recv(), lambda _, verdict: _sent(connection, verdict))


def _sent(connection: Connection, verdict: Verdict) -> bool:
    connection.send(verdict)
    return True


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
    for process in list(_processes.values()):
        if process._key[0] == os.getpid():
            process.end()


atexit.register(_end_all)
SOURCES.append(_stacks)

"""One worker process, seen from the process that owns it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import rewards
from rewards.isolation.stacks import answered_stack

_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TMPDIR", "TZ")


class WorkerStartError(RuntimeError):
    """A worker that did not become ready; the message holds what it said."""


class WorkerProcess:
    """A started worker. It is *starting* until `receive` has returned its first message, which says that it is ready.

    Args:
        settings: what ``rewards.isolation.workers.worker`` reads first: target, warm_up, cpu_seconds, memory_bytes.
        start_try: how often this worker has been started, this start included.
    """

    def __init__(self, settings: dict[str, Any], start_try: int = 1) -> None:
        self.start_try = start_try
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 — lives as long as the worker
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rewards.isolation.workers.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the trainer, which ends its workers itself
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._unread: list[bytes] = []  # pieces of the message under way: joining them for each would be quadratic
        self.ready = False
        self.started = time.monotonic()
        self.num_items = 0
        self.send({**settings, "parent": os.getpid()})

    def fileno(self) -> int:
        """The descriptor that turns readable when `receive` has something to do."""
        return self._output.fileno()

    def send(self, value: Any) -> None:
        """Hand over one value. A worker that is dead swallows it; `receive` then says so."""
        self.started = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            self._input.write(json.dumps(value).encode() + b"\n")
            self._input.flush()

    def receive(self) -> Any | None:
        """The next message where it is complete, ``None`` where it is not. Raises ``EOFError`` of a dead worker."""
        piece = os.read(self.fileno(), 1 << 16)
        if not piece:
            raise EOFError
        self._unread.append(piece)
        if b"\n" not in piece:
            return None
        message, self._unread = b"".join(self._unread), []
        assert message.index(b"\n") == len(message) - 1, "a worker writes one line for what it is sent"
        return json.loads(message)

    def end(self) -> int:
        """Kill it where it still runs, release what it holds, and return its exit status."""
        self._process.kill()
        for stream in (self._input, self._output):
            with contextlib.suppress(BrokenPipeError):  # an unwritten rest
                stream.close()
        return self._process.wait()

    def stack(self) -> str:
        """Where its threads are, which it writes to standard error on SIGUSR1, also from inside C."""
        return answered_stack(self._process.pid, self._said)

    def last_words(self) -> str:
        """What it wrote to standard error before it was ready, from the end."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()[-2000:]

    def exit_words(self) -> str:
        """How it ended, for a person."""
        code = self.end()
        if code >= 0:
            return f"exit status {code}"
        name = signal.Signals(-code).name
        return f"{name}, which GMP raises when it is refused memory" if -code == signal.SIGABRT else name


def _environment() -> dict[str, str]:
    """Enough to find the same modules as here, and no secret; one hash seed, so that each worker judges alike."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    folders = [str(Path(folder).absolute()) for folder in sys.path] + [str(Path(rewards.__path__[0]).parent)]
    return kept | {
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }

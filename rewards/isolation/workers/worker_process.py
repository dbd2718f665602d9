"""One worker process, seen from the process that owns it."""

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_MESSAGE_BYTES = 16 << 20
"""Longest line of a worker, so that no worker can fill the memory of the process that reads it."""
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TMPDIR", "TZ")


class WorkerStartError(RuntimeError):
    """A worker did not become ready; the message holds its output."""


class WorkerMessageError(ValueError):
    """A worker sent something that is neither a part nor the result of its item; the message describes it."""


class WorkerProcess:
    """A started worker. It is *starting* until `receive` has returned its first message, which says that it is ready.

    Args:
        settings: read first by ``worker.py``. With ``users`` the worker has the whole
            environment and prints to the terminal; else it gets no secrets and its output is discarded.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.num_items = 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 — lives as long as the worker
        self._channel, theirs = socket.socketpair()
        output = None if settings["users"] else self._log
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", Path(__file__).with_name("worker.py"), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(settings["users"]),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the trainer, which ends its workers itself
            )
        self._unread = bytearray()  # of an unfinished line
        self._unsent = memoryview(b"")  # of its item
        self._token: str | None = None  # of its item; it has none while it starts
        self.started = time.monotonic()
        # It is dead: `receive` will raise.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._channel.sendall(json.dumps({**settings, "parent": os.getpid()}).encode() + b"\n")

    def fileno(self) -> int:
        """The descriptor that becomes readable when `receive` has something to do."""
        return self._channel.fileno()

    @property
    def has_unsent(self) -> bool:
        """True if a part of its item is still to be sent by `send_more` when the descriptor is writable."""
        return len(self._unsent) > 0

    @property
    def is_silent(self) -> bool:
        """True if it lives and has sent nothing more, as an idle worker must."""
        poll = select.poll()
        poll.register(self, select.POLLIN)
        return not poll.poll(0)

    def send(self, item: Any) -> None:
        """Send an item, or as much of it as the channel takes without waiting.

        Every answer must carry the item's token, which is random: an answer to an earlier item does not count, and one
        to a later item cannot be prepared.
        """
        self.started = time.monotonic()
        self._token = secrets.token_hex(16)
        self._unsent = memoryview(json.dumps({"item": item, "token": self._token}).encode() + b"\n")
        self.send_more()

    def send_more(self) -> None:
        """Send more of the item. Does nothing if the worker is dead; `receive` then raises."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._channel.send(self._unsent, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._unsent = memoryview(b"")

    def receive(self) -> Iterator[dict[str, Any]]:
        """The messages that are complete: parts of its item, and its result, which must be the last.

        JSON, never pickle: a worker that a completion has taken over can send values, but no code.

        Raises:
            EOFError: the worker is dead.
            WorkerMessageError: it sent something else, or more than 16 MiB in one line.
        """
        try:
            piece = self._channel.recv(1 << 16)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise EOFError
        self._unread += piece
        if len(self._unread) > MOST_MESSAGE_BYTES:
            raise WorkerMessageError(f"a message of more than {MOST_MESSAGE_BYTES >> 20} MiB")
        if b"\n" not in piece:
            return
        *lines, self._unread = self._unread.split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                message = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise WorkerMessageError("something that is not JSON") from error
            if not isinstance(message, dict) or message.get("token") != self._token or self._unsent:
                raise WorkerMessageError("something that does not belong to its item")
            if "part" not in message and (number < len(lines) or self._unread):
                raise WorkerMessageError("something after its result")
            yield message

    def end(self) -> int:
        """Kill it and its child processes, close the channel, and return its exit status."""
        # Until it is waited for, no other process has its number.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # it leads a session of its own
        self._channel.close()
        return self._process.wait()

    def log_tail(self) -> str:
        """The end of its output before it was ready."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace").strip()[-2000:]

    def exit_reason(self) -> str:
        """How it ended, as in "by SIGSEGV"."""
        code = self.end()
        if code >= 0:
            return f"with exit code {code}"
        why = ": was there no memory left?" if code == -signal.SIGKILL else ""
        return f"by {signal.Signals(-code).name}{why}"


def _environment(users: bool) -> dict[str, str]:
    """The same module path and a fixed order of sets; for users' workers all other variables, else no secrets."""
    folders = [str(Path(folder).absolute()) for folder in sys.path]
    path = {"PYTHONPATH": os.pathsep.join(folders)}
    if users:
        return {"PYTHONHASHSEED": "0", **os.environ, **path}
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, **path, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}

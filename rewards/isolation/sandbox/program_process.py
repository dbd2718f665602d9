"""One program in the sandbox, from its request to what it left."""

import contextlib
import json
import os
import select
import socket
import weakref
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rewards.isolation.sandbox.limits import Limits, Run, Status
from rewards.isolation.sandbox.zygote_process import ZygoteProcess

BACKSTOP_SECONDS = 30.0
"""Past the longest that a program can take, after which the zygote itself is taken for dead."""

_KILLED: dict[str, Status] = {
    "cpu": "killed_cpu",
    "wall": "killed_wall",
    "threads": "killed_threads",
    "starved": "starved",
    "given_up": "given_up",
}


class ProgramProcess:
    """A program that was asked for. For one thread at a time."""

    def __init__(self, zygote: ZygoteProcess, source: str, stdin: bytes, limits: Limits, *, channel: bool) -> None:
        self.limits = limits
        self._status, their_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel: socket.socket | None = None
        their_channel: socket.socket | None = None
        if channel:
            self.channel, their_channel = socket.socketpair()
        self._stdout, self._stderr = os.memfd_create("stdout"), os.memfd_create("stderr")
        # Also where nobody closes it: a session may be dropped in the middle.
        self._release = weakref.finalize(self, _released, (self._status, self.channel), (self._stdout, self._stderr))
        self._release.atexit = False
        files = [_memory_file(source.encode("utf-8", "surrogatepass")), _memory_file(stdin)]
        descriptors = [*files, self._stdout, self._stderr, their_status.fileno()]
        try:
            with contextlib.suppress(OSError):  # a zygote that is gone shows as a status that never comes
                zygote.request(
                    json.dumps(asdict(limits)), descriptors + ([their_channel.fileno()] if their_channel else [])
                )
        finally:
            their_status.close()
            if their_channel:
                their_channel.close()
            for file in files:
                os.close(file)

    def give_up(self) -> None:
        """Have the program killed if it still runs."""
        with contextlib.suppress(OSError):
            self._status.shutdown(socket.SHUT_WR)

    def result(self) -> Run | None:
        """Wait for its end; ``None`` where the zygote died first. Bounded by ``Limits.longest_seconds``."""
        try:
            first = self._message()
            last = self._message() if first and "ready" in first else first
            return None if last is None else self._run(last, ready=first is not last)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the program, which ends it."""
        self._release()

    def _message(self) -> dict[str, Any] | None:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll((self.limits.longest_seconds + BACKSTOP_SECONDS) * 1000):
            return None
        try:
            message = self._status.recv(1 << 16)
        except OSError:
            return None
        return dict(json.loads(message)) if message else None

    def _run(self, message: dict[str, Any], *, ready: bool) -> Run:
        if not ready and message.get("killed") != "starved":
            return Run("failed_to_start", problem=str(message.get("failed", "it ended before it was confined")))
        stdout, stderr = (_content(file, self.limits.output_bytes) for file in (self._stdout, self._stderr))
        exit_code = os.waitstatus_to_exitcode(message["wait_status"])
        return Run(
            status=self._ending(message, exit_code),
            exit_code=exit_code if exit_code >= 0 else None,
            stdout=stdout,
            stderr=stderr,
            truncated=max(len(stdout), len(stderr)) >= self.limits.output_bytes,
            seconds=message["seconds"],
            cpu_seconds=message["cpu_seconds"],
            waited_seconds=message["waited_seconds"],
        )

    def _ending(self, message: dict[str, Any], exit_code: int) -> Status:
        if exit_code >= 0:
            return "exited"
        if message["killed"]:
            return _KILLED[message["killed"]]
        # The kernel's own limit kills without a word.
        return "killed_cpu" if message["cpu_seconds"] >= self.limits.cpu_seconds else "killed_signal"


def _released(sockets: Iterable[socket.socket | None], files: Iterable[int]) -> None:
    for connection in sockets:
        if connection is not None:
            connection.close()
    for file in files:
        os.close(file)


def _memory_file(content: bytes) -> int:
    """A descriptor that reads ``content`` from its start."""
    file = os.memfd_create("content")
    view = memoryview(content)
    position = 0
    while position < len(view):
        position += os.pwrite(file, view[position:], position)
    return file


def _content(file: int, most: int) -> bytes:
    parts, position = [], 0
    while position < most and (part := os.pread(file, most - position, position)):
        parts.append(part)
        position += len(part)
    return b"".join(parts)

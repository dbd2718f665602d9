"""One program in the sandbox, from request to result, and a session that exchanges messages with it."""

import contextlib
import json
import os
import select
import socket
import struct
import time
import weakref
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from evenkeel.rewards.isolation.sandbox.limits import Limits, Run, Status
from evenkeel.rewards.isolation.sandbox.zygote_process import ZygoteProcess

BACKSTOP_SECONDS = 30.0
"""Seconds beyond the longest that a program can take, after which the zygote itself is taken for dead."""

_LENGTH = struct.Struct("<I")


class ProgramProcess:
    """A requested program. For one thread at a time."""

    def __init__(self, zygote: ZygoteProcess, source: str, stdin: bytes, limits: Limits, *, channel: bool) -> None:
        self.limits = limits
        self._status, their_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel: socket.socket | None = None
        their_channel: socket.socket | None = None
        if channel:
            self.channel, their_channel = socket.socketpair()
        self._stdout, self._stderr = os.memfd_create("stdout"), os.memfd_create("stderr")
        # Also runs if `close` is never called: a session may be dropped in the middle.
        self._release = weakref.finalize(self, _released, (self._status, self.channel), (self._stdout, self._stderr))
        self._release.atexit = False
        files = [_memory_file(source.encode("utf-8", "surrogatepass")), _memory_file(stdin)]
        descriptors = [*files, self._stdout, self._stderr, their_status.fileno()]
        try:
            # A zygote that is gone shows as a status that never comes.
            with contextlib.suppress(OSError):
                zygote.request(
                    json.dumps(asdict(limits)), descriptors + ([their_channel.fileno()] if their_channel else [])
                )
        finally:
            their_status.close()
            if their_channel:
                their_channel.close()
            for file in files:
                os.close(file)

    def result(self) -> Run | None:
        """Wait for its end; ``None`` if the zygote died first. Bounded by ``Limits.longest_seconds``."""
        try:
            first = self._message()
            last = self._message() if first and "ready" in first else first
            return None if last is None else self._run(last, ready=first is not last)
        finally:
            self.close()

    def close(self) -> None:
        """Close the program's descriptors, which ends it."""
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
            return message["killed"]  # type: ignore[no-any-return]
        # The kernel's own limit kills without a message from the zygote.
        return "killed_cpu" if message["cpu_seconds"] >= self.limits.cpu_seconds else "killed_signal"


class SessionOverError(EOFError):
    """The program has ended, closed its channel, or sent something that is not a frame."""


class Session:
    """The trainer's side of a program with a channel, as a context manager: leaving it kills the program.

    In the program the name ``channel`` has ``receive() -> bytes``, which raises ``EOFError`` when this side is done,
    and ``send(bytes)``. Whatever runs there can write to the channel: it carries values, never verdicts.
    """

    def __init__(self, process: ProgramProcess) -> None:
        assert process.channel is not None
        self._process = process
        self._channel = process.channel
        self._run: Run | None = None

    def send(self, payload: bytes) -> None:
        """Send one frame. Raises ``SessionOverError`` if the program no longer reads."""
        if len(payload) > self._process.limits.frame_bytes:
            most = self._process.limits.frame_bytes
            raise ValueError(f"a frame of {len(payload)} bytes; Limits.frame_bytes allows {most}")
        try:
            self._channel.settimeout(self._process.limits.longest_seconds + BACKSTOP_SECONDS)
            self._channel.sendall(_LENGTH.pack(len(payload)) + payload)
        except OSError as error:
            raise SessionOverError("the program no longer reads its channel") from error

    def receive(self) -> bytes:
        """The next frame. Raises ``SessionOverError`` if none will come."""
        deadline = time.monotonic() + self._process.limits.longest_seconds + BACKSTOP_SECONDS
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > self._process.limits.frame_bytes:
            raise SessionOverError(f"a frame of {length} bytes, above Limits.frame_bytes")
        return self._exactly(length, deadline)

    def finish(self) -> Run:
        """Close the channel, wait until the program ends or reaches a limit, and return its result."""
        if self._run is None:
            self._channel.close()
            self._run = self._process.result() or Run("failed_to_start", problem="the sandbox died under the program")
        return self._run

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *error: object) -> None:
        if self._run is None:
            self._process.close()

    def _exactly(self, count: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while count:
            self._channel.settimeout(max(0.0, deadline - time.monotonic()) or 1e-9)
            try:
                part = self._channel.recv(min(count, 1 << 20))
            except OSError:
                part = b""
            if not part:
                raise SessionOverError("the program has ended or closed its channel")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


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

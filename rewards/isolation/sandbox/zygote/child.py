"""A forked child: its start up to the program, and its record in the zygote."""

import contextlib
import json
import os
import socket
import struct
import time
from dataclasses import dataclass
from os import _exit
from typing import Any, NoReturn

from . import program
from .confinement import Confinement

SOURCE, STDIN, STDOUT, STDERR, STATUS, CHANNEL = range(6)
"""The order of a request's descriptors."""

_CHANNEL_DESCRIPTOR = 3
_LENGTH = struct.Struct("<I")


@dataclass
class Child:
    """A running program, as its zygote knows it."""

    pid: int
    handle: int
    status: socket.socket
    started: float
    limits: dict[str, Any]
    killed: str | None = None

    def excess(self) -> str | None:
        """The status of the limit that it has exceeded, if any."""
        now = time.monotonic()
        clock = (~self.pid << 3) | 2  # of its CPU time: ``CPUCLOCK_SCHED``, see clock_getcpuclockid(3)
        if time.clock_gettime(clock) > self.limits["cpu_seconds"]:
            return "killed_cpu"
        if now - self.started > self.limits["wall_seconds"]:
            waited = self.waited()
            if waited > self.limits["starved_seconds"]:
                return "starved"
            if now - self.started - waited > self.limits["wall_seconds"]:
                return "killed_wall"
        return "killed_threads" if _num_threads(self.pid) > self.limits["threads"] else None

    def waited(self) -> float:
        """Seconds in which its first thread was ready to run without a processor; 0 if the kernel does not count them.

        The second number of schedstat, in nanoseconds, see sched-stats.rst of the kernel.
        """
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/schedstat", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) / 1e9
        return 0.0


def become(descriptors: list[int], limits: dict[str, Any], confinement: Confinement, zygote: int) -> NoReturn:
    """The child's whole life: confined, then the program. It never returns into the loop that forked it."""
    status = descriptors[STATUS]
    try:
        os.setsid()
        with open(descriptors[SOURCE], "rb", closefd=False) as file:
            source = file.read()
        confinement.apply(zygote, limits)
    except BaseException as error:  # noqa: BLE001 — reported to the other side; the program does not start
        os.write(status, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        _exit(1)
    try:
        os.write(status, json.dumps({"ready": True}).encode())
        program.run(source, _rearranged(descriptors, limits["frame_bytes"]))
    finally:
        _exit(1)


class Channel:
    """The program's end of a stream of frames: four bytes of length, then the payload.

    Plain reads and writes of one descriptor: the filter permits no more. ``receive`` raises ``EOFError`` when the
    other side is done; ``send`` raises ``ValueError`` for a frame above ``most`` bytes, ``BrokenPipeError`` when it is
    closed.
    """

    def __init__(self, descriptor: int, most: int) -> None:
        self._descriptor = descriptor
        self._most = most

    def send(self, payload: bytes) -> None:
        """Write one frame, waiting until the other side has read what came before."""
        if len(payload) > self._most:
            raise ValueError(f"a frame of {len(payload)} bytes; this channel carries at most {self._most}")
        frame = memoryview(_LENGTH.pack(len(payload)) + payload)
        while frame:
            frame = frame[os.write(self._descriptor, frame) :]

    def receive(self) -> bytes:
        """Wait for one frame."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        chunks: list[bytes] = []
        while count:
            chunk = os.read(self._descriptor, min(count, 1 << 20))
            if not chunk:
                raise EOFError("the other side of the channel is closed")
            chunks.append(chunk)
            count -= len(chunk)
        return b"".join(chunks)


def _rearranged(descriptors: list[int], frame_bytes: int) -> dict[str, Any]:
    """Move standard streams and channel to their places and close all else; returns the program's extra globals."""
    names = {}
    for target, descriptor in enumerate(descriptors[STDIN:STATUS]):
        os.dup2(descriptor, target)
    if len(descriptors) > CHANNEL:
        os.dup2(descriptors[CHANNEL], _CHANNEL_DESCRIPTOR)
        names["channel"] = Channel(_CHANNEL_DESCRIPTOR, frame_bytes)
    os.closerange(_CHANNEL_DESCRIPTOR + len(names), 1 << 16)
    return names


def _num_threads(pid: int) -> int:
    """The field num_threads of its stat, see proc_pid_stat(5)."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 — fifty times a second
        return int(file.read().rpartition(b")")[2].split()[17])

"""A forked child: from its first line to the program, and how the zygote sees it."""

import json
import os
import socket
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from . import program
from .channel import Channel
from .confinement import Confinement

SOURCE, STDIN, STDOUT, STDERR, STATUS, CHANNEL = range(6)
"""The order of a request's descriptors."""

_CHANNEL_DESCRIPTOR = 3


@dataclass
class Child:
    """A program that runs, as its zygote knows it."""

    pid: int
    handle: int
    status: socket.socket
    started: float
    limits: dict[str, Any]
    killed: str | None = None

    def excess(self) -> str | None:
        """The limit that it has passed, if any: ``cpu``, ``wall`` or ``threads``."""
        if time.monotonic() - self.started > self.limits["wall_seconds"]:
            return "wall"
        if time.clock_gettime(_cpu_clock(self.pid)) > self.limits["cpu_seconds"]:
            return "cpu"
        return "threads" if _threads(self.pid) > self.limits["threads"] else None


def become(descriptors: list[int], limits: dict[str, Any], confinement: Confinement, zygote: int) -> NoReturn:
    """The child's whole life: confined, then the program. It never returns into the loop that forked it."""
    status = descriptors[STATUS]
    try:
        os.setsid()
        with open(descriptors[SOURCE], "rb", closefd=False) as file:
            source = file.read()
        confinement.apply(
            zygote=zygote,
            cpu_seconds=limits["cpu_seconds"],
            memory_bytes=limits["memory_bytes"],
            output_bytes=limits["output_bytes"],
        )
    except BaseException as error:  # noqa: BLE001 — told to the other side, and the program does not start
        os.write(status, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        os._exit(1)
    try:
        os.write(status, json.dumps({"ready": True}).encode())
        program.run(source, _rearranged(descriptors, limits["frame_bytes"]))
    finally:
        os._exit(1)


def _rearranged(descriptors: list[int], frame_bytes: int) -> dict[str, Any]:
    """Standard streams and channel at their places, all else closed; the names that the program finds."""
    names = {}
    for target, descriptor in enumerate(descriptors[STDIN:STATUS]):
        os.dup2(descriptor, target)
    if len(descriptors) > CHANNEL:
        os.dup2(descriptors[CHANNEL], _CHANNEL_DESCRIPTOR)
        names["channel"] = Channel(_CHANNEL_DESCRIPTOR, frame_bytes)
    os.closerange(_CHANNEL_DESCRIPTOR + len(names), 1 << 16)
    return names


def _cpu_clock(pid: int) -> int:
    """The clock of a process's CPU time: ``CPUCLOCK_SCHED`` of the kernel's encoding, see clock_getcpuclockid(3)."""
    return (~pid << 3) | 2


def _threads(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 — fifty times a second
        return int(file.read().rpartition(b")")[2].split()[17])

"""The trainer's side: the zygote and the paths that it may read, one program, and a session with one."""

import contextlib
import importlib.util
import json
import os
import select
import site
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
import weakref
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from evenkeel.rewards.isolation.sandbox.limits import Isolation, Limits, Run, SandboxUnavailableError, Status

BACKSTOP_SECONDS = 30.0
"""Seconds beyond the longest that a program can take, after which the zygote itself is taken for dead."""

_LENGTH = struct.Struct("<I")
Closable = BinaryIO | socket.socket
_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/urandom")
_START_SECONDS = 120.0
_START = """
import sys
sys.path.insert(0, {folder!r})
from zygote.server import main
sys.path.pop(0)
main()
"""
# BLAS of one thread: a process with threads cannot be forked. Nothing of the trainer's own environment is passed on.
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    # Two heaps, not one of 64 MiB of address space for each thread.
    "MALLOC_ARENA_MAX": "2",
    # The same program prints its sets in the same order, whichever zygote it came from.
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
# Without it some interpreters do not start.
_KEPT = ("LD_LIBRARY_PATH",)


@dataclass
class ZygoteProcess:
    """A running zygote."""

    process: subprocess.Popen[bytes]
    control: socket.socket

    def close(self) -> None:
        """End it and, with it, every program it runs."""
        self.control.close()
        self.process.kill()
        self.process.wait()


def started(isolation: Isolation, preimported: tuple[str, ...]) -> ZygoteProcess:
    """A warmed zygote. Raises ``SandboxUnavailableError`` with the zygote's output."""
    if sys.platform != "linux":
        raise SandboxUnavailableError(f"programs are confined on Linux, not on {sys.platform}")
    readable = _readable_paths(preimported)
    options = {"isolation": isolation, "preimported": preimported, "readable": readable}
    command = [sys.executable, "-P", "-s", "-B", "-X", "utf8", "-c", _START.format(folder=str(Path(__file__).parent))]
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, str(theirs.fileno()), json.dumps(options)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_ENVIRONMENT | {name: os.environ[name] for name in _KEPT if name in os.environ},
            cwd="/",
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is the trainer's
        )
        theirs.close()
        zygote = ZygoteProcess(process, control)
        poll = select.poll()
        poll.register(control, select.POLLIN)
        answer = {"failed": f"it was not ready within {_START_SECONDS:.0f} seconds"}
        if poll.poll(_START_SECONDS * 1000):
            answer = dict(json.loads(control.recv(1 << 16) or b"{}"))
        if answer.get("ready"):
            return zygote
        zygote.close()
        log.seek(0)
        log_tail = log.read().decode(errors="replace").strip().splitlines()[-1:] or ["it wrote nothing"]
    raise SandboxUnavailableError(
        f"isolation {isolation!r} is not available here: {answer.get('failed') or log_tail[0]}. "
        "isolation: none runs programs of the policy with your rights"
    )


def _readable_paths(preimported: Iterable[str]) -> list[str]:
    """Existing paths that a program may read: Python, its installed packages, the system's libraries.

    The folder of an editable package is added only if ``preimported`` names the package.
    """
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), f"{sys.prefix}/lib", f"{sys.base_prefix}/lib", *_SYSTEM]
    for name in preimported:
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):  # folders of one package may lie apart
            if (spec := importlib.util.find_spec(".".join(parts[:depth]))) is None:
                break
            paths += spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else [])
    return sorted({str(Path(path).resolve()) for path in paths if Path(path).exists()})


class ProgramProcess:
    """A requested program. For one thread at a time."""

    def __init__(self, zygote: ZygoteProcess, source: str, stdin: bytes, limits: Limits, *, channel: bool) -> None:
        self.limits = limits
        self._status, their_status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._stdout, self._stderr = _memory_file(), _memory_file()
        self.channel: socket.socket | None = None
        kept: list[Closable] = [self._status, self._stdout, self._stderr]
        lent: list[Closable] = [
            _memory_file(source.encode("utf-8", "surrogatepass")),
            _memory_file(stdin),
            their_status,
        ]
        if channel:
            self.channel, their_channel = socket.socketpair()
            kept.append(self.channel)
            lent.append(their_channel)
        # Also runs if `close` is never called: a session may be dropped in the middle.
        self._release = weakref.finalize(self, _closed, kept)
        self._release.atexit = False
        descriptors = [file.fileno() for file in (*lent[:2], self._stdout, self._stderr, *lent[2:])]
        # A zygote that is gone shows as a status that never comes.
        with contextlib.suppress(OSError):
            socket.send_fds(zygote.control, [json.dumps(asdict(limits)).encode()], descriptors)
        _closed(lent)

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
        most = self.limits.output_bytes
        stdout, stderr = (os.pread(file.fileno(), most, 0) for file in (self._stdout, self._stderr))
        exit_code = os.waitstatus_to_exitcode(message["wait_status"])
        return Run(
            status=self._ending(message, exit_code),
            exit_code=exit_code if exit_code >= 0 else None,
            stdout=stdout,
            stderr=stderr,
            truncated=max(len(stdout), len(stderr)) >= most,
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
        self._most = process.limits.frame_bytes
        self._seconds = process.limits.longest_seconds + BACKSTOP_SECONDS
        self._run: Run | None = None

    def send(self, payload: bytes) -> None:
        """Send one frame. Raises ``SessionOverError`` if the program no longer reads."""
        if len(payload) > self._most:
            raise ValueError(f"a frame of {len(payload)} bytes; Limits.frame_bytes allows {self._most}")
        try:
            self._channel.settimeout(self._seconds)
            self._channel.sendall(_LENGTH.pack(len(payload)) + payload)
        except OSError as error:
            raise SessionOverError("the program no longer reads its channel") from error

    def receive(self) -> bytes:
        """The next frame. Raises ``SessionOverError`` if none will come."""
        deadline = time.monotonic() + self._seconds
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > self._most:
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


def _closed(files: Iterable[Closable]) -> None:
    for file in files:
        file.close()


def _memory_file(content: bytes = b"") -> BinaryIO:
    """A file in memory that is read from its start."""
    file = os.fdopen(os.memfd_create("content"), "w+b")
    file.write(content)
    file.seek(0)
    return file

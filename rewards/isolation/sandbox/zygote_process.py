"""The trainer's handle on a zygote: its start, the paths that it may read, requests."""

import importlib.util
import json
import os
import select
import site
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evenkeel.rewards.isolation.sandbox.limits import Isolation, SandboxUnavailableError

_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/urandom")
_START_SECONDS = 120.0
_FOLDER = Path(__file__).parent
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

    def request(self, limits: str, descriptors: list[int]) -> None:
        """Request a run. Raises ``OSError`` if the zygote is dead."""
        socket.send_fds(self.control, [limits.encode()], descriptors)

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
    command = [sys.executable, "-P", "-s", "-B", "-X", "utf8", "-c", _START.format(folder=str(_FOLDER))]
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
        poll = select.poll()
        poll.register(control, select.POLLIN)
        answer = {"failed": f"it was not ready within {_START_SECONDS:.0f} seconds"}
        if poll.poll(_START_SECONDS * 1000):
            answer = dict(json.loads(control.recv(1 << 16) or b"{}"))
        if answer.get("ready"):
            return ZygoteProcess(process, control)
        control.close()
        process.kill()
        process.wait()
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
        if (spec := importlib.util.find_spec(name)) is not None:
            paths += spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else [])
    return sorted({str(Path(path).resolve()) for path in paths if Path(path).exists()})

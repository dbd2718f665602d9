"""The trainer's handle on a zygote: start it, send it programs, notice that it died."""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rewards.isolation.sandbox.limits import Isolation, SandboxUnavailableError
from rewards.isolation.sandbox.readable import bubblewrap_command, readable_paths

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
    """A running zygote.

    Attributes:
        landlock: the kernel's landlock version.
    """

    process: subprocess.Popen[bytes]
    control: socket.socket
    landlock: int

    def request(self, limits: str, descriptors: list[int]) -> None:
        """Ask for a run. Raises ``OSError`` where the zygote is gone."""
        socket.send_fds(self.control, [limits.encode()], descriptors)

    def close(self) -> None:
        """End it and, with it, every program it runs."""
        self.control.close()
        self.process.kill()
        self.process.wait()


def started(isolation: Isolation, preimported: tuple[str, ...]) -> ZygoteProcess:
    """A zygote that is warm. Raises ``SandboxUnavailableError`` with what the other side said."""
    if sys.platform != "linux":
        raise SandboxUnavailableError(f"programs can be confined on Linux only, and this is {sys.platform}")
    readable = readable_paths(preimported)
    options = {"isolation": isolation, "preimported": preimported, "readable": readable}
    command = [sys.executable, "-P", "-s", "-B", "-X", "utf8", "-c", _START.format(folder=str(_FOLDER))]
    if isolation == "bubblewrap":
        command = bubblewrap_command([*readable, str(_FOLDER)]) + command
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [*command, str(theirs.fileno()), json.dumps(options)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=_ENVIRONMENT | {name: os.environ[name] for name in _KEPT if name in os.environ},
            cwd="/",
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is the trainer's
        )
        theirs.close()
        answer = _first_message(control)
        if answer.get("ready"):
            return ZygoteProcess(process, control, int(str(answer["landlock"])))
        control.close()
        process.kill()
        process.wait()
        said.seek(0)
        last_words = said.read().decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    raise SandboxUnavailableError(
        f"isolation {isolation!r} is not to be had here: {answer.get('failed') or last_words[0]}. No program was run. "
        "Write isolation: none where you accept that programs by the model run with all your rights"
    )


def _first_message(control: socket.socket) -> dict[str, object]:
    poll = select.poll()
    poll.register(control, select.POLLIN)
    if not poll.poll(_START_SECONDS * 1000):
        return {"failed": f"it was not ready within {_START_SECONDS:.0f} seconds"}
    message = control.recv(1 << 16)
    return dict(json.loads(message)) if message else {}

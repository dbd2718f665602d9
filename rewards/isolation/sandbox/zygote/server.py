"""The warmed process: it forks a child per program, enforces its limits and reports how it ended.

A request is one message on the control socket: limits as JSON and the descriptors of the program: source, standard
input, output and error as memory files, the *status* socket and, for a session, the channel. The child reads the
source itself: this process never holds a program, so no program inherits another. Over the status socket go "ready"
from the confined child, then the result from here. When its other side is closed, the program is killed; when the
control socket is, all are.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from .child import CHANNEL, STATUS, Child, become
from .confinement import Confinement

_TICK_SECONDS = 0.02
_ORPHAN_CHECK_SECONDS = 2.0
_WARM_UP = {"numpy": "import numpy; a = numpy.ones((8, 8)); a @ a; numpy.sort(a.ravel()); str(a)"}


def serve(control: socket.socket, options: dict[str, Any]) -> NoReturn:
    """Warm up, send "ready", and serve requests until the other side closes."""
    confined = options["isolation"] != "none"
    for name in options["preimported"]:
        importlib.import_module(name)
        exec(_WARM_UP.get(name, ""), {})
    confinement = Confinement.prepared(options["readable"]) if confined else Confinement(None, None)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        # When memory runs out, the kernel ends programs and not the trainer.
        score.write("1000")
    gc.collect()
    # So that no child copies the pages of what is here by collecting it.
    gc.freeze()
    control.send(json.dumps({"ready": True}).encode())
    Server(control, confinement).run()


class Server:
    """The loop over requests and running children."""

    def __init__(self, control: socket.socket, confinement: Confinement) -> None:
        self._control = control
        self._confinement = confinement
        self._children: dict[int, Child] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._pid, self._parent = os.getpid(), os.getppid()

    def run(self) -> NoReturn:
        """Serve until the trainer is gone; children die with this process."""
        while os.getppid() == self._parent:
            timeout = _TICK_SECONDS if self._children else _ORPHAN_CHECK_SECONDS
            # The control socket, registered first, comes first: no descriptor is opened after one is closed here.
            for descriptor, _ in self._poll.poll(timeout * 1000):
                if descriptor == self._control.fileno():
                    self._accept()
                elif descriptor in self._children:
                    self._ended(self._children[descriptor])
                else:
                    self._given_up(descriptor)
            self._enforce()
        os._exit(0)

    def _accept(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, CHANNEL + 1)
        if not message:
            os._exit(0)
        limits = json.loads(message)
        status = socket.socket(fileno=descriptors[STATUS])
        started = time.monotonic()
        try:
            pid = os.fork()
        except OSError as error:
            status.send(json.dumps({"failed": f"no process can be started: {error}"}).encode())
            status.close()
        else:
            if pid == 0:
                become(descriptors, limits, self._confinement, self._pid)
            self._watch(Child(pid, os.pidfd_open(pid), status, started, limits))
        for descriptor in (*descriptors[:STATUS], *descriptors[CHANNEL:]):
            os.close(descriptor)

    def _watch(self, child: Child) -> None:
        self._children[child.handle] = child
        self._poll.register(child.handle, select.POLLIN)
        self._poll.register(child.status, select.POLLIN | select.POLLRDHUP)

    def _given_up(self, status: int) -> None:
        for child in self._children.values():
            if child.status.fileno() == status:
                self._kill(child, "given_up")

    def _enforce(self) -> None:
        for child in self._children.values():
            if child.killed is None and (excess := child.excess()):
                self._kill(child, excess)

    def _kill(self, child: Child, reason: str) -> None:
        child.killed = child.killed or reason
        signal.pidfd_send_signal(child.handle, signal.SIGKILL)
        with contextlib.suppress(KeyError):
            self._poll.unregister(child.status)

    def _ended(self, child: Child) -> None:
        """Collect a program that has ended and report how."""
        waited = child.waited()
        with contextlib.suppress(ProcessLookupError):
            # Its child processes, possible at isolation none.
            os.killpg(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        result = {
            "wait_status": status,
            "killed": child.killed,
            "seconds": time.monotonic() - child.started,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "waited_seconds": waited,
        }
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            child.status.send(json.dumps(result).encode())
        self._poll.unregister(child.handle)
        with contextlib.suppress(KeyError):
            self._poll.unregister(child.status)
        del self._children[child.handle]
        child.status.close()
        os.close(child.handle)


def main() -> NoReturn:
    """``python … CONTROL OPTIONS``: the control socket's descriptor, and JSON."""
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        serve(control, json.loads(sys.argv[2]))
    except BaseException as error:
        control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        raise

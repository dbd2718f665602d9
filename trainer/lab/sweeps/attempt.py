"""One attempt at a cell, run in a process that submitit starts: launch, pass on a stop, record the end."""

import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.process_group import await_group, signal_group

CELL_VARIABLE = "EVENKEEL_CELL"
"""Names the cell in the environment of its processes."""

Begin = Callable[[], Any] | None


@dataclass(frozen=True)
class Attempt:
    """The command ``launcher`` + ``script``, run in ``folder`` with ``environment`` added to the inherited one.

    Attributes:
        cell: the cell's directory.
        number: of the attempt, from 1.
        launcher: the command up to the training script.
        script: the training script with its arguments.
    """

    cell: Path
    number: int
    launcher: list[str]
    script: list[str]
    folder: Path
    environment: dict[str, str]

    def __call__(self) -> int:
        """Run on this node of a submitit job; the launcher's exit status."""
        from submitit import JobEnvironment

        job = JobEnvironment()
        return self.run(job.node, rendezvous(job.node, job.hostnames, job.job_id))

    def run(self, node: int, rendezvous_arguments: list[str], *, in_terminal: bool = False, begin: Begin = None) -> int:
        """Run to the end, or until SIGTERM or SIGUSR2 stops it with a checkpoint; the launcher's exit status.

        Args:
            node: of the job; the first one keeps the records.
            rendezvous_arguments: arguments of the launcher, see `rendezvous`.
            in_terminal: whether Ctrl-C stops the attempt too; otherwise it is the sweep's to handle.
            begin: starts the run in place of the launcher, and returns its process.
        """
        directory = CellDirectory(self.cell)
        with ExitStack() as stack:
            if node == 0:
                stack.enter_context(directory.held())
            log = stack.enter_context(directory.log.open("a"))
            stopping = StopSignals(in_terminal)
            command = [*self.launcher, *rendezvous_arguments, *self.script]
            print(f"\n=== attempt {self.number}, {now()}: {shlex.join(command)}", file=log, flush=True)
            process = begin() if begin else self._launched(command, log)
            started = {"host": socket.gethostname(), "process_group": process.pid, "started": now()}
            if node == 0:
                directory.write_attempt(self.number, started)
            stopping.forward_to(lambda: signal_group(process.pid, signal.SIGTERM))
            code: int = process.wait()
            status = code if code >= 0 else 128 - code  # of signal n: 128 + n
            await_group(process.pid)
            if node == 0:
                ended = {"ended": now(), "exit_status": status, "stopped": stopping.requested}
                directory.write_attempt(self.number, {**started, **ended})
            return status

    def _launched(self, command: list[str], log: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, **self.environment, CELL_VARIABLE: str(self.cell)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # SLURM may send it to every process of a job; by default it ends a process
            preexec_fn=partial(signal.signal, signal.SIGUSR2, signal.SIG_IGN),
        )


class StopSignals:
    """Notes SIGTERM and SIGUSR2 (SLURM: time is nearly over), and Ctrl-C where asked to, and passes them on."""

    def __init__(self, in_terminal: bool) -> None:
        self.requested = False
        self._forward: Callable[[], None] | None = None
        for number in (signal.SIGTERM, signal.SIGUSR2):
            signal.signal(number, self._request)
        # Not SIG_IGN, which the launched run would inherit.
        signal.signal(signal.SIGINT, self._request if in_terminal else lambda number, frame: None)

    def forward_to(self, pass_on: Callable[[], None]) -> None:
        """Call ``pass_on`` at every stop from now on, and at once if one was already requested."""
        self._forward = pass_on
        if self.requested:
            pass_on()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        if self._forward is not None:
            self._forward()


def rendezvous(node: int, hosts: list[str], job_id: str) -> list[str]:
    """The launcher's arguments with which the processes of a cell find each other and no other cell's.

    On one node the launcher takes a free port. On several all must know it before they start: it follows from the job's
    number, so that jobs which share a node have ports of their own.
    """
    if len(hosts) == 1:
        return ["--main_process_port", "0"]
    address = ["--main_process_ip", hosts[0], "--main_process_port", str(job_port(job_id))]
    return ["--num_machines", str(len(hosts)), "--machine_rank", str(node), *address]


def job_port(job_id: str) -> int:
    """A port from 20000 to 29999; 10,000 jobs in a row have different ones."""
    return 20000 + int(job_id.partition("_")[0]) % 10000


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")

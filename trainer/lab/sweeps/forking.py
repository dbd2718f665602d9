"""Attempts forked from a process that has imported what a cell needs, which takes most of the time of a short one.

Only while no thread runs there: a fork copies one thread, and what others have locked stays locked. The launcher starts
that process, so that it has the variables of a launched cell but for W&B's, which are read when a run begins.
"""

import gc
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from evenkeel.trainer.lab.sweeps.attempt import CELL_VARIABLE, Attempt, rendezvous
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory

MODULE = "evenkeel.trainer.lab.sweeps.forking"
_NO_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Of pyarrow's allocator."""


class Forks:
    """Asks for forks of a process, which it starts by ``launcher`` for the first, with the sweep's ``environment``."""

    def __init__(self, launcher: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.launcher, self.log, self.environment = launcher, log, environment
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, attempt: Attempt) -> int | None:
        """The process of an attempt that was forked; ``None`` where it must be launched."""
        if self.process is None:
            self.channel, theirs = Pipe()
            command = [*self.launcher, *rendezvous(0, ["localhost"], "0"), "-m", MODULE]
            environment = {**_NO_THREAD, **os.environ, **self.environment, "CUDA_VISIBLE_DEVICES": ""}
            with theirs, self.log.open("a") as log:
                self.process = subprocess.Popen(
                    command, env=environment, stdin=theirs.fileno(), stdout=log, stderr=log, start_new_session=True
                )
        with suppress(EOFError, OSError):
            self.channel.send(attempt)
            forked: int | None = self.channel.recv()
            return forked
        return None

    def close(self) -> None:
        """End the process; its forks go on."""
        if self.process is not None:
            self.channel.close()
            self.process.wait()


def main() -> int:
    """The process: import, and fork an attempt for each that is asked for; in a fork, its exit status."""
    requests = Connection(os.dup(0))
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    from evenkeel.trainer.run.libraries import import_training

    import_training()
    import torch

    for name in [name for name, value in _NO_THREAD.items() if os.environ[name] == value]:
        del os.environ[name]
    if not os.fork():
        os._exit(0)
    os.wait()  # OpenBLAS, which has started threads, ends them at a fork
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # leaves no zombies
    with suppress(EOFError):
        while True:
            attempt: Attempt = requests.recv()
            # one process without an accelerator and without a second thread
            is_alone = "RANK" not in os.environ and not torch.accelerator.is_available()
            forked = os.fork() if is_alone and psutil.Process().num_threads() == 1 else None
            if forked == 0:
                requests.close()
                return _run(attempt)
            requests.send(forked)
    return 0


def _run(attempt: Attempt) -> int:
    """Run an attempt; its run is forked before it holds a lock or handles signals, and waits until it may begin."""
    import numpy as np

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    waits, goes = os.pipe()
    if run := os.fork():
        os.close(waits)
        os.setpgid(run, run)

        def begin() -> psutil.Process:
            os.write(goes, b"\n")
            return psutil.Process(run)

        return replace(attempt, launcher=[sys.executable]).run(0, [], begin=begin)
    os.close(goes)
    if not os.read(waits, 1):  # the attempt has ended
        return 1
    os.close(waits)
    for number in (signal.SIGHUP, signal.SIGUSR2):  # as in a launched one
        signal.signal(number, signal.SIG_IGN)
    with CellDirectory(attempt.cell).log.open("a") as log:
        os.dup2(log.fileno(), 1), os.dup2(log.fileno(), 2)
    os.chdir(attempt.folder)
    os.environ.update({**attempt.environment, CELL_VARIABLE: str(attempt.cell)})
    gc.unfreeze()
    for made in [each for each in gc.get_objects() if type(each) is TemporaryDirectory]:
        TemporaryDirectory.__init__(made)  # W&B's, made at its import: the end of another fork deletes the shared one
    gc.freeze()
    np.random.seed()  # as at its import; a fork seeds Python's own
    sys.argv = attempt.script[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

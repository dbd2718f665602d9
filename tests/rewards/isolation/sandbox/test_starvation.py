"""A machine without a processor to spare: what a program did not get is not held against it."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenkeel.rewards.isolation.sandbox import Limits, Sandbox

NEVER_ENDS = "while True: pass\n"
PATIENT = Limits(wall_seconds=3, cpu_seconds=20, starved_seconds=1.0)
"""Starved first, also where the busy process beside it is held up itself and gives it half of a processor."""
SLEEPS = "import time\ntime.sleep(60)\n"


def place(pid: int, processors: set[int], niceness: int) -> None:
    """Where a process runs and how much it gets there, in its session's group too, where the kernel makes such."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, processors)
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


@contextlib.contextmanager
def starving(zygote: int) -> Iterator[None]:
    """All programs of a zygote get a tenth of one processor, and a busy process the rest."""
    processors = os.sched_getaffinity(0)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    over = threading.Event()
    starved = set[int]()

    def starve() -> None:
        while not over.wait(0.001):
            programs = set(map(int, Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()))
            for pid in programs - starved:
                place(pid, {max(processors)}, 10)  # waits are counted once it runs: not 19
            starved.update(programs)

    watch = threading.Thread(target=starve)
    try:
        os.sched_setaffinity(busy.pid, {max(processors)})
        watch.start()
        yield
    finally:
        over.set()
        watch.join()
        busy.kill()
        busy.wait()
        for pid in starved:
            place(pid, processors, 0)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(slots=1, preimported=()) as found:
        found.run("")
        yield found


def zygote_of(sandbox: Sandbox) -> int:
    assert sandbox._zygote is not None
    return sandbox._zygote.process.pid


def test_a_program_without_a_processor_is_starved_and_not_late(sandbox: Sandbox) -> None:
    with starving(zygote_of(sandbox)):
        run = sandbox.run(NEVER_ENDS, limits=PATIENT)
    assert run.status == "starved", run
    assert not run.killed
    assert run.waited_seconds > 1.0


def test_a_sleeping_program_is_late_wherever_it_sleeps(sandbox: Sandbox) -> None:
    limits = Limits(wall_seconds=1.5, starved_seconds=30.0)  # it has to start, too
    with starving(zygote_of(sandbox)):
        run = sandbox.run(SLEEPS, limits=limits)
    assert run.status == "killed_wall", run
    assert run.killed

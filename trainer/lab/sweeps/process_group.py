"""A launch with all of its descendants: started as one process group, stopped and awaited as one.

``accelerate launch`` of one process leaves its child running at SIGTERM, so the run may outlive its launcher.
"""

import contextlib
import os
import signal
import time

import psutil

from evenkeel.trainer.run.processes import is_alive


def group_members(group: int) -> list[int]:
    """The living processes of a process group on this machine."""
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and is_alive(process):
                members.append(process.pid)
    return members


def files_of(process: int) -> list[str]:
    """The files that a process of this user has open; none once it has ended."""
    try:
        return [file.path for file in psutil.Process(process).open_files()]
    except psutil.Error:
        return []


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to every process of the group, if any is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def await_group(group: int, seconds_between: float = 0.2) -> None:
    """Return when no process of the group lives."""
    while group_members(group):
        time.sleep(seconds_between)

"""A launch with all of its descendants: started as one process group, stopped and awaited as one.

``accelerate launch`` of one process leaves its child running when it is told to stop, so the launcher's own end says
nothing about the run's.
"""

import os
import signal
import time
from pathlib import Path


def group_members(group: int) -> list[int]:
    """The living processes of a process group on this machine; ended ones that nobody has awaited do not count."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()  # the command before it may hold anything
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, member_of = fields[0], int(fields[2])
        if member_of == group and state not in "ZX":
            members.append(int(stat.parent.name))
    return members


def environment_of(process: int) -> dict[str, str]:
    """The environment that a process of this user was started with; empty once it has ended."""
    try:
        text = Path(f"/proc/{process}/environ").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    return dict(entry.partition("=")[::2] for entry in text.split("\0") if entry)


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to every process of the group; nothing where none is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def await_group(group: int, seconds_between: float = 0.2) -> None:
    """Return when no process of the group lives."""
    while group_members(group):
        time.sleep(seconds_between)

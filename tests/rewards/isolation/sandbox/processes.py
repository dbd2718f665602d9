"""Who is alive on this machine, from the process file system."""

import time
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes whose parent is ``pid``; zombies do not count."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has just ended
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on."""
    return [found for child in children(pid) for found in (child, *descendants(child))]


def alive(pid: int) -> bool:
    """It runs, or at least is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_gone(pids: list[int], within_seconds: float) -> bool:
    """All of ``pids`` have ended in time."""
    deadline = time.monotonic() + within_seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, pids))

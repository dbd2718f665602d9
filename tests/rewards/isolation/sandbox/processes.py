"""Who is alive on this machine; zombies are not."""

import time

import psutil


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True) if alive(child.pid)]


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def all_gone(pids: list[int], within_seconds: float) -> bool:
    """All of ``pids`` have ended in time."""
    deadline = time.monotonic() + within_seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, pids))

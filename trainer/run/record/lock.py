"""A run's directory belongs to one process group at a time."""

import errno
import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from evenkeel.rewards.registry import Refusal

LOCK = "owner.lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a file system that has no locks."""


class OwnerError(Refusal):
    """A run's directory in which another process trains."""


def owned(run: Path) -> FileLock:
    """Take the lock of ``run``, until it is released, collected or its process ends, whatever ends that.

    Children do not keep it: a program that is started does not inherit the file, and filelock closes it in a fork.
    It holds between hosts where the file system supports ``flock`` (NFS with its lock daemon, Lustre with that option).
    Where it does not, a message says so, and the run continues without a lock.

    Raises:
        OwnerError: another process holds it.
    """
    # A soft lock, a file that outlives a killed process, would keep a run from being resumed.
    lock = FileLock(run / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        owner = (run / LOCK).read_text().strip() or "another process"
        raise OwnerError(
            f"{run} is locked by {owner}, which trains there: two trainings would write into each other's files. "
            "Wait until it ends or stop it with SIGTERM, or start a run of its own without --resume."
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        print(f"{run} cannot be locked ({error.strerror}): start no second training in it.", flush=True)
        return lock
    (run / LOCK).write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    return lock

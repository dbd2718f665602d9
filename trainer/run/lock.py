"""A run's directory belongs to one process group at a time."""

import errno
import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from rewards.registry import Refusal

LOCK = "owner.lock"
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class OwnerError(Refusal):
    """A run's directory in which another process trains."""


def owned(run: Path) -> IO[str]:
    """Take the lock of ``run`` for as long as the returned file is open in this process.

    A POSIX lock: it ends with its process, whatever ends that, children do not inherit it, and it holds between hosts
    where the file system knows such locks (NFS with its lock daemon, Lustre with ``flock``). Where it knows none, this
    is said, and the run goes on without.

    Raises:
        OwnerError: another process holds it.
    """
    file = (run / LOCK).open("a+")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        file.seek(0)
        owner = file.read().strip() or "another process"
        file.close()
        raise OwnerError(
            f"{run} is in the hands of {owner}, which trains there: two trainings would write into each other's files. "
            "Wait until it ends or stop it with SIGTERM, or start a run of its own without --resume."
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        print(f"{run} cannot be locked ({error.strerror}): start no second training in it.", flush=True)
        return file
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    return file

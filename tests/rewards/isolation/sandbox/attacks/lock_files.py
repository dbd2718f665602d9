"""A lock on a shared file makes others wait."""

import fcntl

file = os.open(os.__file__, os.O_RDONLY)
attempt(lambda: fcntl.flock(file, fcntl.LOCK_EX))
attempt(lambda: fcntl.lockf(file, fcntl.LOCK_SH))
attempt(lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK))

"""A second process, by every way that python knows."""

import posix


def forked(fork):
    pid = fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


attempt(lambda: forked(os.fork), "fork")
attempt(lambda: forked(posix.fork), "posix.fork")
attempt(lambda: forked(lambda: os.forkpty()[0]), "forkpty")

"""Kernel memory in the buffers of pipes and socket pairs."""

import fcntl
import socket

attempt(lambda: fcntl.fcntl(os.pipe()[1], fcntl.F_SETPIPE_SZ, 1 << 20), "a larger pipe")
pairs = []
try:
    for _ in range(2000):
        pairs.append((os.pipe(), socket.socketpair()))
except OSError:
    pass
if len(pairs) > 100:
    hit(len(pairs))

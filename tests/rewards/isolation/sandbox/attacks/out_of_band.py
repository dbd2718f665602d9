"""Messages with other flags than those of plain bytes, above all out of band, on a permitted pair of sockets."""

import errno
import socket

PLAIN = (socket.MSG_PEEK, socket.MSG_DONTWAIT, socket.MSG_WAITALL, socket.MSG_NOSIGNAL)
one, other = socket.socketpair()
one.setblocking(False)
other.setblocking(False)


def tried(name, action, flag):
    """A hit where the kernel has looked at the message, even if it then found fault with it."""
    try:
        action(flag)
    except OSError as error:
        if error.errno == errno.EPERM:
            return
    hit(f"{name} with flag {flag:#x}")


for flag in (1 << bit for bit in range(31)):
    if flag not in PLAIN:
        tried("send", lambda flags: one.send(b"x", flags), flag)
        tried("receive", lambda flags: other.recv(1, flags), flag)

"""A pair of datagram sockets can send to any other local socket by its name."""

import socket

attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", UNIX_DATAGRAM_SOCKET))

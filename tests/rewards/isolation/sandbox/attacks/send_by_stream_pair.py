"""A permitted pair of stream sockets, misused to send to a name."""

# unconfined: skip, a stream refuses it by itself
import socket

attempt(lambda: socket.socketpair()[0].sendto(b"x", UNIX_DATAGRAM_SOCKET))

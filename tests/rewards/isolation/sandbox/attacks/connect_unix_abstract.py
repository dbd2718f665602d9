"""Talk to a local service that has no path."""

import socket

attempt(lambda: socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT_SOCKET))

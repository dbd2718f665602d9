"""Talk to a local service by its path."""

import socket

attempt(lambda: socket.socket(socket.AF_UNIX).connect(UNIX_SOCKET))

"""Wait for someone to call."""

import socket

attempt(lambda: socket.create_server(("127.0.0.1", 0)))

"""Reach a server on this machine."""

import socket

attempt(lambda: socket.create_connection(("127.0.0.1", PORT), timeout=2))

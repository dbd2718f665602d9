"""Send one packet to anywhere."""

import socket

attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"secret", ("127.0.0.1", PORT)))

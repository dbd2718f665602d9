"""The zygote's python objects: sockets that still work, texts of programs or secrets."""

# unconfined: skip, nothing at any level
import gc
import socket
import sys

frame, objects = sys._getframe(), gc.get_objects()
while frame is not None:
    objects += frame.f_locals.values()
    frame = frame.f_back
for found in objects:
    if isinstance(found, socket.socket):
        try:
            found.send(b'{"wait_status": 0, "killed": null, "seconds": 0, "cpu_seconds": 0}')
        except (OSError, ValueError):
            continue
        hit("a socket of the zygote's")
    if type(found) is str and len(found) < 1000 and "ANOTHER PROGRAM" + "'S TEXT" in found:
        hit("another program's text")

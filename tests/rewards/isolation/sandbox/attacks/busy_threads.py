"""Threads that all compute: together they have one program's time."""

# ends: killed_cpu
import hashlib
import threading

block = bytes(1 << 20)


def work():
    while True:
        hashlib.sha256(block)


for _ in range(8):
    threading.Thread(target=work).start()

"""A function that is called at the exit, and does not return."""

# ends: killed_cpu
# unconfined: skip, the limit of time holds at every level
import atexit


def loop():
    while True:
        pass


atexit.register(loop)

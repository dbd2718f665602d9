"""A function that is called at the exit, and does not return."""

# ends: killed_cpu
import atexit


def loop():
    while True:
        pass


atexit.register(loop)

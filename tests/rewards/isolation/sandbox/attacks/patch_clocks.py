"""A program that stops its own clocks is still timed from outside."""

# ends: killed_cpu
import signal
import time

time.time = time.monotonic = time.process_time = lambda: 0.0
signal.setitimer(signal.ITIMER_PROF, 0)
signal.setitimer(signal.ITIMER_REAL, 0)
while True:
    pass

import signal
import time


def ring(number, frame):
    raise TimeoutError


signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    time.sleep(5)
except TimeoutError:
    pass
else:
    raise AssertionError
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass

"""A stopped process uses nothing, and never ends."""

# ends: killed_wall
import signal

os.kill(os.getpid(), signal.SIGSTOP)

"""A stopped process uses nothing, and never ends."""

# ends: killed_wall
# unconfined: skip, the limit of time holds at every level
import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)

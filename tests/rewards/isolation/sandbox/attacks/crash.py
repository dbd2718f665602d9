"""Write to address 0."""

# ends: killed_signal
# unconfined: skip, a crash ends only the program
import ctypes

ctypes.memset(0, 1, 1)

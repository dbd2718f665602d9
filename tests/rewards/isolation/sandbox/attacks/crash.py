"""Write to address 0."""

# ends: killed_signal
ctypes.memset(0, 1, 1)

"""Type into the terminal that the trainer was started from."""

import fcntl

TIOCSTI = 0x5412
try:
    fcntl.ioctl(0, TIOCSTI, b"x")
except PermissionError:
    pass
except OSError as error:
    hit(f"not refused, only no terminal here: {error}")

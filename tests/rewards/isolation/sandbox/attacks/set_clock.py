"""Change the time of the machine. Not refused is what fails for any other reason than permission."""

import time

try:
    time.clock_settime(12345, 0.0)
except PermissionError:
    pass
except OSError as error:
    hit(error)

"""A process that lives on when the program has ended, and holds its output open."""

import time

try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1)
            hit("the orphan writes")
        os._exit(0)
    time.sleep(1.5)
except OSError:
    pass

"""Have the kernel send SIGIO to somebody else when data comes."""

import fcntl

attempt(lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, TRAINER))
attempt(lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETSIG, 9))

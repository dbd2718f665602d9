"""Stands before every attack, and imports for it. A hit is printed by the attack itself, when it got what it wanted."""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def hit(what=""):
    """Say that it worked."""
    os.write(1, f"HIT {what}\n".encode())


def attempt(action, what=""):
    """A hit unless the system refuses."""
    try:
        result = action()
    except (OSError, MemoryError):
        return
    hit(what or result)


def libc(name, *arguments):
    """Call a function of the C library; −1 becomes ``OSError``."""
    result = getattr(_libc, name)(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def system_call(number, *arguments):
    """Make a system call by its number; −1 becomes ``OSError``."""
    result = _libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if result == -1:
        raise OSError(ctypes.get_errno(), str(number))
    return result

"""Landlock: files may be read beneath given folders; everything else in the file system, and the network, is closed.

See landlock(7). A kernel announces an ABI version; each version handles more. The seccomp filter closes
what older versions leave open: truncation (before 3), TCP (before 4), ioctl on devices (before 5), abstract sockets and
signals (before 6).
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

# The same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NETWORK_RIGHTS, _SCOPES = 0b11, 0b11

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def abi() -> int:
    """The kernel's landlock version; 0 if landlock is missing or switched off."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))))


def ruleset(readable: Iterable[str]) -> int:
    """A file descriptor of the rules; paths that do not exist are left out. ``/dev/null`` can be written too."""
    version = abi()
    rights = (1 << _FILE_RIGHTS[min(version, 5)]) - 1
    attributes = struct.pack("QQQ", rights, _NETWORK_RIGHTS, _SCOPES)[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = _call("create the rules", _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    for path in readable:
        _allow(rules, path, _READ_FILE | _READ_DIR)
    _allow(rules, "/dev/null", (_READ_FILE | _WRITE_FILE | _TRUNCATE) & rights)
    return rules


def restrict_self(rules: int) -> None:
    """Bind this process to ``rules``; for good. ``no_new_privs`` must be set."""
    _call("enforce the rules", _RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0))


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no permission
    try:
        if not stat.S_ISDIR(os.fstat(folder).st_mode):
            rights &= ~_READ_DIR
        rule = struct.pack("=Qi", rights, folder)
        _call(f"allow {path}", _ADD_RULE, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(folder)


def _call(purpose: str, *arguments: object) -> int:
    result = int(_libc.syscall(*arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock cannot {purpose}: {os.strerror(ctypes.get_errno())}")
    return result

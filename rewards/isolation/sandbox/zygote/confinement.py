"""Confinement of a child to reading a few folders, computing, and writing to its own descriptors."""

import ctypes
import math
import os
import platform
import resource
import signal
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import landlock, seccomp

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 1, 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True)
class Confinement:
    """Rules and filter, prepared once for all children of a zygote; neither at isolation ``none``."""

    rules: int | None
    filter: list[seccomp.Instruction] | None

    @classmethod
    def prepared(cls, readable: Iterable[str]) -> "Confinement":
        """Rules that leave ``readable`` open for reading, and the filter; ``OSError`` if this kernel has none."""
        if not landlock.abi():
            raise OSError("no landlock: it needs Linux 5.13 with lsm=landlock,… and a container that permits it")
        return cls(landlock.ruleset(readable), seccomp.instructions(platform.machine()))

    def apply(self, zygote: int, limits: Mapping[str, Any]) -> None:
        """Confine this process for good. Raises ``OSError`` at the first step that the kernel refuses."""
        libc = ctypes.CDLL(None, use_errno=True)
        set_resource_limits(limits["cpu_seconds"], limits["memory_bytes"], limits["output_bytes"])
        if self.rules is not None and self.filter is not None:
            _give_up_capabilities(libc)
            _prctl(libc, _PR_SET_NO_NEW_PRIVS, 1)
            landlock.restrict_self(self.rules)
            os.close(self.rules)
        # After the change of credentials, which clears it; the zygote may have died before.
        _prctl(libc, _PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != zygote:
            os._exit(1)
        if self.filter is not None:
            seccomp.load(libc, self.filter)


def set_resource_limits(cpu_seconds: float, memory_bytes: int, output_bytes: int) -> None:
    """Set the kernel's limits. Soft and hard are equal: a program cannot raise them, and CPU time kills at once.

    The stack of the first thread is the exception: many programs set it, and the address space limits it too.
    """
    address_space = _address_space() + memory_bytes
    limits = {
        # In whole seconds, and a backstop: the zygote kills at the exact limit and says so.
        resource.RLIMIT_CPU: math.ceil(cpu_seconds) + 1,
        resource.RLIMIT_AS: address_space,
        resource.RLIMIT_FSIZE: output_bytes,
        resource.RLIMIT_NOFILE: 64,
        # A limit of 1, not 0: that also keeps the kernel from starting a core handler it was told to pipe to.
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        # The kernel keeps at least 128 MiB free below the stack of the first thread.
        resource.RLIMIT_STACK: 100 << 20,
    }
    for name, limit in limits.items():
        _, hard = resource.getrlimit(name)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(name, (allowed, hard if name == resource.RLIMIT_STACK else allowed))


def _address_space() -> int:
    """Bytes of address space in use: a program's memory counts from here, whatever its parent has imported."""
    with open("/proc/self/statm", "rb") as pages:  # noqa: PTH123
        return int(pages.read().split()[0]) * resource.getpagesize()


def _give_up_capabilities(libc: ctypes.CDLL) -> None:
    _prctl(libc, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    if libc.capset(header, bytes(24)):
        raise OSError(ctypes.get_errno(), "the kernel refuses to take the capabilities away")


def _prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed: {os.strerror(ctypes.get_errno())}")

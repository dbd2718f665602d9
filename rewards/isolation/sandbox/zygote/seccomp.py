"""The filter of system calls, as a BPF program that is assembled once and loaded in every child.

Permitted calls pass, foreign tables (x32, 32-bit) kill, everything else fails with EPERM. See seccomp(2), and
``struct seccomp_data`` there for the offsets.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from .syscalls import ARCHITECTURES, CONDITIONS, NEWEST, OWN_PID, X32_BIT, Condition

_LOAD, _AND, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _KILL_PROCESS, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def load(libc: ctypes.CDLL, filtering: Sequence[Instruction]) -> None:
    """Bind this thread, and every thread it starts, to the filter; for good. ``no_new_privs`` must be set."""
    code = b"".join(
        struct.pack("HBBI", code, true, false, os.getpid() if operand == OWN_PID else operand)
        for code, true, false, operand in filtering
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(filtering), ctypes.addressof(buffer))
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refuses the seccomp filter")


def instructions(machine: str) -> list[Instruction]:
    """The filter for ``machine``, a key of ``ARCHITECTURES``; ``OSError`` for another processor."""
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for the processor {machine!r}")
    architecture = ARCHITECTURES[machine]
    numbers = architecture.numbers
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, X32_BIT),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_JUMP_EQUAL, 1, 0, architecture.clone3),
        (_JUMP_AT_LEAST, 0, 1, NEWEST),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for name, number in numbers.items():
        answer = _conditional(CONDITIONS[name]) if name in CONDITIONS else [(_RETURN, 0, 0, _ALLOW)]
        program += [(_JUMP_EQUAL, 0, len(answer), number), *answer]
    return [*program, (_RETURN, 0, 0, _ERROR | errno.EPERM)]


def _conditional(conditions: tuple[Condition, ...]) -> list[Instruction]:
    """Allow where every condition holds, else EPERM."""
    program: list[Instruction] = []
    for condition in conditions:
        values = condition.values
        program += [(_LOAD, 0, 0, _ARGUMENTS + 4 * condition.word), (_AND, 0, 0, condition.mask)]
        # A match jumps over the remaining comparisons and the refusal; the last miss falls into the refusal.
        program += [(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
        program += [(_RETURN, 0, 0, _ERROR | errno.EPERM)]
    return [*program, (_RETURN, 0, 0, _ALLOW)]

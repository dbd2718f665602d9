"""Untrusted Python programs under hard limits: values out, never verdicts.

A *zygote*, a clean Python process that has imported what programs need, forks a child per program; the child gives up
its rights for good before it runs the program. Nothing of the trainer is in its memory: the zygote is a new process
with an empty environment, and each child reads its program from a memory file that the zygote never opens.

::

    with Sandbox() as sandbox:
        run = sandbox.run("print(int(input()) + 1)", stdin=b"41\\n")      # Run("exited", 0, b"42\\n", …)

**Stopped**, each by at least one attack in the tests (as root, as an unprivileged user, in a default Docker container):

- the network, and local services: no socket but pairs between the program's own threads;
- files: nothing can be written, changed, locked or removed; read are python's own folders, installed packages and the
  system's libraries, and no other file, whoever owns it;
- other processes: no signal, trace, memory access, priority or limit of theirs; ``/proc`` is closed;
- new processes: no fork, no exec, so no orphan, no fork bomb, and what ends the program ends all of it;
- the environment, inherited descriptors, other programs' texts and results;
- time (CPU time of all threads; wall time as a backstop), memory, threads, output, core dumps, kernel memory in pipes,
  memory files and shared segments; ignored signals, stopped clocks and exit functions do not help;
- every system call that is not in ``zygote/syscalls.py``, and those of foreign tables (x32, 32-bit).

**Not stopped**: using the processor and memory up to the limits, times the number of slots; asking whether a path
exists and how large it is (``stat``); reading installed packages, so a package that holds test answers leaks them;
learning the time, the kernel's version, processor and load; faults of the kernel or processor. A burst of threads may
exceed its limit for some hundredths of a second. Whatever a program prints or sends is its own claim.

**Levels**, without a silent fallback (`SandboxUnavailableError` instead, which says what is missing):

- ``landlock_seccomp``, the default: Landlock rules, a seccomp filter, kernel limits, no capabilities. Linux 5.13 or
  newer on x86-64 or aarch64; no privilege, no installation, works inside a default container.
- ``none``: the limits alone. Programs have the rights of the trainer's user; must be named explicitly, and warns.

When a zygote starts, a dozen attacks are tried inside it; if one succeeds, no program is run.
"""

from evenkeel.rewards.isolation.sandbox.limits import Isolation, Limits, Run, SandboxUnavailableError
from evenkeel.rewards.isolation.sandbox.processes import Session, SessionOverError
from evenkeel.rewards.isolation.sandbox.sandbox import Job, Sandbox, shared_sandbox

__all__ = [
    "Isolation",
    "Job",
    "Limits",
    "Run",
    "Sandbox",
    "SandboxUnavailableError",
    "Session",
    "SessionOverError",
    "shared_sandbox",
]

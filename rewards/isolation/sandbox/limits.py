"""What a sandboxed program may use, and what a run of one leaves behind."""

from dataclasses import dataclass
from typing import Literal

Isolation = Literal["landlock_seccomp", "none"]

Status = Literal["exited", "killed_cpu", "killed_wall", "killed_threads", "killed_signal", "starved", "failed_to_start"]
"""How a run ended.

- ``exited``: by itself, with an exit code, which proves nothing.
- ``killed_cpu``, ``killed_wall``, ``killed_threads``: at that limit.
- ``killed_signal``: by a signal: a crash, or the kernel's own memory killer.
- ``starved``: it had no processor for ``starved_seconds`` and its own limits were not reached, which says nothing about
  the program.
- ``failed_to_start``: the sandbox's own failure, twice; it says nothing about the program, whose score is unscored.
"""


class SandboxUnavailableError(ValueError):
    """The isolation that was asked for does not hold on this machine; nothing was run."""


@dataclass(frozen=True)
class Limits:
    """Hard limits of one program. None can be raised, ignored or outlived from inside.

    Processor time is the first of them. Wall time is the backstop for programs that sleep or wait for what never comes:
    the seconds in which a program was ready and other processes had the processors are not the program's.

    Attributes:
        cpu_seconds: of all its threads together.
        wall_seconds: running, sleeping and waiting for anything but a processor.
        memory_bytes: address space beyond what the warmed interpreter takes.
        output_bytes: of standard output, and as many of standard error; writing more fails inside the program.
        threads: at once. Watched fifty times a second, so that a burst may be larger for that long.
        frame_bytes: the largest message of a session's channel, in either direction.
        starved_seconds: waiting of its first thread for a processor; after these (and after ``wall_seconds``) the run
            is ended without a word on the program. Where the kernel keeps no such count (``/proc/PID/schedstat``)
            waiting is wall time like any other.
    """

    cpu_seconds: float = 4.0
    wall_seconds: float = 10.0
    memory_bytes: int = 1 << 30
    output_bytes: int = 1 << 20
    threads: int = 64
    frame_bytes: int = 16 << 20
    starved_seconds: float = 60.0

    @property
    def longest_seconds(self) -> float:
        """Wall time after which a program has certainly been ended."""
        return self.wall_seconds + self.starved_seconds


@dataclass(frozen=True)
class Run:
    """What one program left. Values, never a verdict: whatever is in them, the program wrote it.

    Attributes:
        status: how it ended.
        exit_code: where it exited; ``None`` where it was killed.
        stdout, stderr: what it wrote, at most ``Limits.output_bytes`` each.
        truncated: one of them reached that size.
        seconds: wall time from the fork to its end.
        cpu_seconds: user and system time of all its threads.
        waited_seconds: ready to run, without a processor.
        problem: of a run that failed to start, why.
    """

    status: Status
    exit_code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: bool = False
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    waited_seconds: float = 0.0
    problem: str = ""

    @property
    def killed(self) -> bool:
        """It was cut off at a limit."""
        return self.status in ("killed_cpu", "killed_wall", "killed_threads", "killed_signal")

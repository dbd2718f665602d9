"""Limits of a sandboxed program, and the result of a run."""

from dataclasses import dataclass
from typing import Literal

Isolation = Literal["landlock_seccomp", "none"]

Status = Literal["exited", "killed_cpu", "killed_wall", "killed_threads", "killed_signal", "starved", "failed_to_start"]
"""How a run ended.

- ``exited``: by itself; its exit code proves nothing.
- ``killed_cpu``, ``killed_wall``, ``killed_threads``: at that limit.
- ``killed_signal``: by a signal: a crash, or the kernel's own memory killer.
- ``starved``: it had no processor for ``starved_seconds`` before reaching another limit: the program is unscored.
- ``failed_to_start``: the sandbox itself failed, twice: the program is unscored.
"""


class SandboxUnavailableError(ValueError):
    """The requested isolation does not hold on this machine; nothing was run."""


@dataclass(frozen=True)
class Limits:
    """Hard limits of one program. None can be raised, ignored or outlived from inside.

    Processor time is the main limit. Wall time is the backstop for programs that sleep or wait; seconds in which a
    program was ready to run without a processor do not count.

    Attributes:
        cpu_seconds: all threads together.
        wall_seconds: running, sleeping, and waiting for anything but a processor.
        memory_bytes: address space beyond what the warmed interpreter takes.
        output_bytes: of standard output, and as many of standard error; writing more fails inside the program.
        threads: at once. Watched fifty times a second, so that a burst may be larger for that long.
        frame_bytes: the largest message of a session's channel, in either direction.
        starved_seconds: time for which its first thread waits for a processor, after which (and after
            ``wall_seconds``) the run ends as ``starved``. If the kernel does not count it (``/proc/PID/schedstat``),
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
    """Result of one program. Values, never a verdict: the program itself wrote them.

    Attributes:
        status: how it ended.
        exit_code: ``None`` if it was killed.
        stdout, stderr: its output, at most ``Limits.output_bytes`` each.
        truncated: one of them reached that size.
        seconds: wall time from the fork to its end.
        cpu_seconds: user and system time of all its threads.
        waited_seconds: ready to run, without a processor.
        problem: why a run failed to start.
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
        """True if it was cut off at a limit, or crashed."""
        return self.status in ("killed_cpu", "killed_wall", "killed_threads", "killed_signal")

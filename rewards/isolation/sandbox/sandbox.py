"""The sandbox: its options, its zygote, and its slots for programs that run in parallel."""

import logging
import os
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

from evenkeel.rewards.isolation.sandbox.limits import Isolation, Limits, Run, SandboxUnavailableError
from evenkeel.rewards.isolation.sandbox.processes import ProgramProcess, Session, ZygoteProcess, started

logger = logging.getLogger(__name__)

_ATTEMPTS = 2
_ATTACKS = """
import ctypes, errno, os, socket, sys

def attempt(name, action):
    try:
        action()
    except (OSError, PermissionError):
        return
    print("HIT", name)

def executes():
    try:
        os.execv("/nonexistent", ["x"])
    except PermissionError:
        raise
    except OSError:
        pass

def forks():
    if os.fork() == 0:
        os._exit(0)

trainer = {trainer}
attempt("read /etc/passwd", lambda: open("/etc/passwd").read())
attempt("list /", lambda: os.listdir("/"))
attempt("read the trainer's environment", lambda: open(f"/proc/{{trainer}}/environ").read())
attempt("write to /tmp", lambda: os.open("/tmp", os.O_TMPFILE | os.O_WRONLY))
attempt("write to /dev/shm", lambda: os.open("/dev/shm", os.O_TMPFILE | os.O_WRONLY))
attempt("open a socket", lambda: socket.socket())
attempt("signal another process", lambda: os.kill(os.getppid(), 0))
attempt("signal the trainer", lambda: os.kill(trainer, 0))
attempt("change a file's mode", lambda: os.chmod(os.__file__, os.stat(os.__file__).st_mode))
attempt("make a memory file", lambda: os.close(os.memfd_create("x")))
attempt("start a program", executes)
attempt("fork", forks)
print("DONE")
"""


@dataclass(frozen=True)
class Job:
    """One program of a batch."""

    source: str
    stdin: bytes = b""
    limits: Limits = field(default_factory=Limits)


class Sandbox:
    """Runs untrusted python programs, each in a process of its own that is born confined.

    Nothing starts before the first run. The object can be used from several threads, and in a forked child, which
    starts its own zygote.

    Args:
        isolation: see the package's docstring for what each level stops. There is no silent fallback.
        slots: programs at once in ``run`` and ``run_all``; default: the processors this process may use, divided
            among the processes of this machine (``LOCAL_WORLD_SIZE``). Results do not depend on it.
        preimported: packages imported once, before the fork. Programs import others too, only slower.
    """

    def __init__(
        self,
        *,
        isolation: Isolation = "landlock_seccomp",
        slots: int | None = None,
        preimported: tuple[str, ...] = ("numpy",),
    ) -> None:
        self.isolation: Isolation = isolation
        processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
        self.slots = slots or max(1, processors // ranks)
        self.preimported = tuple(preimported)
        self._zygote: ZygoteProcess | None = None
        self._reset()

    def run(self, source: str, *, stdin: bytes = b"", limits: Limits | None = None) -> Run:
        """Run ``source`` as ``__main__`` with ``stdin``, wait for its end, and return its result."""
        self._renew_after_fork()
        with self._slots:
            for _ in range(_ATTEMPTS):
                zygote = self._zygote_process()
                result = ProgramProcess(zygote, source, stdin, limits or Limits(), channel=False).result()
                if result is not None:
                    return result
                self._discard(zygote)
        return Run("failed_to_start", problem=f"the sandbox died {_ATTEMPTS} times under this program")

    def run_all(self, jobs: Iterable[Job]) -> list[Run]:
        """Run a batch, as many at once as there are slots; results in the order of ``jobs``."""
        with ThreadPoolExecutor(self.slots) as pool:
            return list(pool.map(lambda job: self.run(job.source, stdin=job.stdin, limits=job.limits), jobs))

    def session(self, driver: str, *, limits: Limits | None = None) -> Session:
        """Run ``driver``, trusted source that finds the name ``channel``, and talk to it.

        A session takes no slot, so that one thread can hold two: the caller has to limit how many run in parallel.
        """
        self._renew_after_fork()
        return Session(ProgramProcess(self._zygote_process(), driver, b"", limits or Limits(), channel=True))

    def close(self) -> None:
        """End the zygote and its programs. The next run starts a new one."""
        with self._lock:
            if self._zygote is not None:
                self._zygote.close()
            self._zygote = None

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _reset(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(self.slots)
        self._zygote = None

    def _renew_after_fork(self) -> None:
        """In a forked child the zygote is the parent's, and locks may be held by threads that are not here."""
        if self._owner != os.getpid():
            self._reset()

    def _zygote_process(self) -> ZygoteProcess:
        zygote = self._zygote
        if zygote is not None and zygote.process.poll() is not None:
            self._discard(zygote)
        with self._lock:
            if self._zygote is None:
                self._zygote = self._tested()
            return self._zygote

    def _tested(self) -> ZygoteProcess:
        """A new zygote in which the attacks of the self-test failed."""
        zygote = started(self.isolation, self.preimported)
        if self.isolation == "none":
            logger.warning("isolation: none. Programs of the policy run with your rights")
            return zygote
        if problem := breaches(zygote):
            zygote.close()
            raise SandboxUnavailableError(problem)
        return zygote

    def _discard(self, zygote: ZygoteProcess) -> None:
        """Replace a zygote that died, once, whichever thread notices first."""
        with self._lock:
            if self._zygote is zygote:
                logger.warning("the process that runs programs died and is replaced")
                zygote.close()
                self._zygote = None


def breaches(zygote: ZygoteProcess) -> str:
    """The problem of the sandbox that a dozen attacks show; empty if there is none."""
    source = _ATTACKS.format(trainer=os.getpid())
    run = ProgramProcess(zygote, source, b"", Limits(), channel=False).result()
    if run is None:
        return "the process that runs programs died in its self-test"
    lines = run.stdout.decode(errors="replace").splitlines()
    hits = [line.removeprefix("HIT ") for line in lines if line.startswith("HIT ")]
    if hits:
        return f"in the self-test a program could {', '.join(hits)}. Use another machine, or isolation: none"
    if run.status != "exited" or run.exit_code != 0 or lines[-1:] != ["DONE"]:
        detail = run.problem or run.stderr.decode(errors="replace").strip()[-300:]
        return f"the self-test did not reach its end ({run.status}, exit code {run.exit_code}): {detail}"
    return ""


@cache
def shared_sandbox(isolation: Isolation = "landlock_seccomp", preimported: tuple[str, ...] = ("numpy",)) -> Sandbox:
    """The sandbox of these options for all of this process, with which it ends."""
    return Sandbox(isolation=isolation, preimported=preimported)

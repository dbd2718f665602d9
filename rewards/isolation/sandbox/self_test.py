"""A dozen attacks that a sandbox must survive before it runs any program."""

import os

from evenkeel.rewards.isolation.sandbox.limits import Limits
from evenkeel.rewards.isolation.sandbox.program_process import ProgramProcess
from evenkeel.rewards.isolation.sandbox.zygote_process import ZygoteProcess

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


def breaches(zygote: ZygoteProcess) -> str:
    """The problem of the sandbox that the attacks show; empty if there is none."""
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

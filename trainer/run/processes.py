"""The processes of a run: their launcher, how they end with it, and what their exit statuses mean."""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

TRAINED, FAILED, REFUSED, STOPPED, STOPPED_WITHOUT_CHECKPOINT = 0, 1, 2, 130, 143
"""Exit statuses of scripts/train.py."""

SECONDS_TO_BE_ENDED = 60
"""How long a rank gives its launcher to end it when rank 0 has ended, for which it looks many times a second."""

_LAUNCHERS = ("accelerate", "launch.py", "torchrun", "deepspeed")
_LAUNCHING_MODULES = ("accelerate.commands.", "torch.distributed.")
_PR_SET_PDEATHSIG = 1


def launcher() -> int | None:
    """The process that started this one as a rank: accelerate launch, torchrun or deepspeed; or none."""
    parent = os.getppid()
    try:
        command = Path(f"/proc/{parent}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    named = any(Path(word).name in _LAUNCHERS or word.startswith(_LAUNCHING_MODULES) for word in command[:4])
    return parent if named else None


def end_with_launcher() -> None:
    """Let the kernel send this process SIGTERM when its launcher ends, however that ends: no rank trains on alone.

    SIGTERM, not SIGKILL: the rank stops as it does on request, with a checkpoint. Linux only.
    """
    if launcher() is not None:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def say(text: str, *, of_all: bool = False, of_one: bool = False) -> None:
    """Print ``text`` to standard error, once for all ranks.

    What rank 0 has to say the others mostly have to say too. They wait for the launcher to end them, which it does when
    rank 0 ends, and speak only if it does not: then they were alone with it. What is ``of_all`` rank 0 alone says; what
    is ``of_one`` this rank says at once.
    """
    rank = int(os.environ.get("RANK", "0")) if launcher() is not None else 0
    if rank and of_all:
        return
    if rank and not of_one:
        time.sleep(SECONDS_TO_BE_ENDED)
    print(f"\n{f'[rank {rank}] ' if rank else ''}{text}", file=sys.stderr, flush=True)

"""The processes of a run: their launcher, what ends them and with which exit status, and a rank whose peer has died."""

import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

FAILED, REFUSED, STOPPED, STOPPED_WITHOUT_CHECKPOINT = 1, 2, 130, 143
"""Exit statuses of evenkeel train; 0: trained."""

SECONDS_TO_BE_ENDED = 60.0
"""How long a rank waits for its launcher to end it when rank 0 has ended. Launchers look many times a second."""
SECONDS_TO_BE_ENDED_AFTER_PEER = 30.0
"""The same for a rank whose peer has died: the launcher knows which rank died and how, so this one stays silent."""
SECONDS_FOR_RANK_0 = 1.0
"""Other ranks wait this long before they stop, or rank 0, asked to stop at the same time, would take them for dead."""

_LAUNCHERS = ("accelerate", "torchrun", "deepspeed")
_LAUNCHING_MODULES = ("accelerate.commands.", "torch.distributed.")
_PR_SET_PDEATHSIG = 1

# gloo and NCCL raise plain RuntimeErrors, so a lost connection is known by its words alone.
_LOST = (
    "connection closed by peer",
    "connection reset by peer",
    "connection refused",
    "broken pipe",
    "socket closed",
    "remote process exited",
    "nccl",
    "timed out waiting",
    "connect timeout",
    "failed to recv",
)


def launcher() -> int | None:
    """Id of the launcher of this rank (evenkeel or accelerate launch, torchrun, deepspeed); ``None`` without one."""
    try:
        parent = psutil.Process(os.getppid())
        command = parent.cmdline()[:5]
    except psutil.Error:
        return None
    names = [Path(word).name for word in command]
    ours = ("evenkeel", "launch") in pairwise(names)
    is_module = any(word.startswith(_LAUNCHING_MODULES) for word in command)
    named = ours or is_module or any(name in _LAUNCHERS for name in names)
    return parent.pid if named else None


def end_with_launcher() -> None:
    """Let the kernel send this process SIGTERM when its launcher ends, however that ends: no rank trains on alone.

    SIGTERM, not SIGKILL: the rank stops as it does on request, with a checkpoint. Linux only.
    """
    if launcher() is None:
        if os.getppid() == 1 and "TORCHELASTIC_RUN_ID" in os.environ:  # it has ended already
            os._exit(STOPPED_WITHOUT_CHECKPOINT)
    else:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def say(text: str, *, of_all: bool = False, of_one: bool = False) -> None:
    """Print ``text`` to standard error, once for all ranks.

    Most messages are the same on every rank. Ranks other than 0 wait for the launcher to end them, which it does when
    rank 0 ends, and print only if it does not: then they were the only ones to fail. A message ``of_all`` ranks is
    printed by rank 0 alone, one ``of_one`` rank by that rank at once.
    """
    rank = int(os.environ.get("RANK", "0")) if launcher() is not None else 0
    if rank and of_all:
        return
    if rank and not of_one:
        time.sleep(SECONDS_TO_BE_ENDED)
    print(f"\n{f'[rank {rank}] ' if rank else ''}{text}", file=sys.stderr, flush=True)


def print_line(text: str) -> None:
    """Print ``text`` to standard output at once, on a line of its own even after an unfinished progress line."""
    print(f"\n{text}", flush=True)


@contextmanager
def stoppable_outside_training() -> Iterator[None]:
    """Outside training, which handles SIGTERM itself: end with a line and status 143, without a new checkpoint.

    At once, not by an exception: a library that is being imported or a process group that is being made would turn it
    into one of its own.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if peer_died():
            os._exit(FAILED)
        if os.environ.get("RANK", "0") != "0":
            time.sleep(SECONDS_FOR_RANK_0)
        say("Stopped without a new checkpoint. To start or go on: --resume auto.", of_all=True)
        os._exit(STOPPED_WITHOUT_CHECKPOINT)

    as_now = signal.getsignal(signal.SIGINT)  # training changes it
    with handled(stop, signal.SIGTERM), handled(as_now, signal.SIGINT):
        yield


@contextmanager
def handled(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    """Inside, ``handler`` is that of these signals; then each has again the one that it had."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # the last: a faulty disk
_FULL_WORDS = (*map(os.strerror, _FULL), "file write failed", "failed writing file", "unexpected pos")  # torch's own


def is_full(error: BaseException | None) -> bool:
    """Whether ``error``, or an error that caused it, means a full disk or quota."""
    while error is not None:
        if getattr(error, "errno", None) in _FULL or any(words in str(error) for words in _FULL_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_lost_connection(error: BaseException) -> bool:
    """``error`` says that another rank cannot be reached."""
    text = str(error).lower()
    return isinstance(error, RuntimeError) and launcher() is not None and any(words in text for words in _LOST)


def peer_died() -> bool:
    """The launcher of this rank has fewer living ranks than it started: it then ends the others by SIGTERM."""
    parent = launcher()
    if parent is None:
        return False
    try:
        living = [child for child in psutil.Process(parent).children() if is_alive(child)]
    except psutil.Error:
        return False
    return len(living) < int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def is_alive(process: psutil.Process) -> bool:
    """The process runs, and is not a zombie."""
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False


def exit_after_peer_failure(error: BaseException) -> int:
    """Wait for the launcher to end this rank, and print a message only if it does not; returns the exit status."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(SECONDS_TO_BE_ENDED_AFTER_PEER)
    rank, reason = os.environ.get("RANK", "0"), str(error).strip().splitlines()[0][:300]
    print(f"\n[rank {rank}] Another rank is lost: {reason}\nTo go on: --resume auto.", file=sys.stderr, flush=True)
    return FAILED

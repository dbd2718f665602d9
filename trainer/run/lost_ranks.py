"""A rank that another one has left alone: it is silent and ends, for who started both knows more of it."""

import os
import signal
import sys
import time
from pathlib import Path

from trainer.run.processes import FAILED, launcher

SECONDS_TO_BE_ENDED = 30.0
"""How long such a rank waits for its launcher, which looks many times a second and knows which rank ended, and how."""
_WORDS = (
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
_COMMUNICATION = ("gloo", "nccl", "tcpstore", "dist", "c10d", "mpi")


def is_of_lost_rank(error: BaseException) -> bool:
    """Whether ``error`` says that another rank cannot be reached; of gloo and NCCL a plain RuntimeError."""
    text = str(error).lower()
    return (
        isinstance(error, RuntimeError)
        and launcher() is not None
        and any(words in text for words in _WORDS)
        and any(words in f"{text} {type(error).__name__.lower()}" for words in _COMMUNICATION)
    )


def lost_sibling() -> bool:
    """Whether the launcher of this rank has fewer living ranks than it started: it then ends the others by SIGTERM."""
    parent = launcher()
    if parent is None:
        return False
    children = Path(f"/proc/{parent}/task/{parent}/children")
    try:
        living = sum(_lives(int(number)) for number in children.read_text().split())
    except OSError:
        return False
    return living < int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def _lives(process: int) -> bool:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX"


def end_as_survivor(error: BaseException) -> int:
    """Wait for the launcher to end this rank, and say what happened only where it does not; the exit status."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(SECONDS_TO_BE_ENDED)
    rank, reason = os.environ.get("RANK", "0"), str(error).strip().splitlines()[0][:300]
    print(
        f"\n[rank {rank}] Another rank cannot be reached any more, so this one ends: {reason}\nWhat it said stands "
        "above or in the log of its machine. --resume auto goes on from the newest checkpoint.",
        file=sys.stderr,
        flush=True,
    )
    return FAILED


def killed_rank(rank: int, process: int, code: int) -> str:
    """What a launcher says of the rank that a signal ended first."""
    name = signal.Signals(-code).name
    why = " Linux does so where memory runs out: look into the kernel's log." if name == "SIGKILL" else ""
    return (
        f"Rank {rank} (process {process}) was ended by {name}, and the other ranks were ended with it.{why} The same "
        "command with --resume auto goes on from the newest checkpoint."
    )

"""The program of a worker process: ``python worker.py DESCRIPTOR``, which imports nothing but its target.

The descriptor is a channel of JSON, one value a line. The first line in holds the settings. Then the worker imports the
target, scores the warm-up items, limits its memory, and writes ``{"ready": true}``; after that each line in is an item
with its token, and the worker writes a line for each part that the target yields and one for the result, each with that
token. It ends when its input ends, and is killed when the thread that started it ends.

CPU time is limited by ``ITIMER_PROF``, whose signal makes the kernel end the process: also inside C, with the GIL held,
where no Python handler ever runs.
"""

import contextlib
import ctypes
import json
import logging
import os
import pkgutil
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Score items until the input ends."""
    channel = int(sys.argv[1])
    os.set_inheritable(channel, False)
    items, results = os.fdopen(channel, "rb"), os.fdopen(os.dup(channel), "wb")
    if not (first := items.readline()):
        return
    settings = json.loads(first)
    _die_with(settings["parent"])
    # Dispositions and masks are inherited.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        function = pkgutil.resolve_name(settings["target"])
        if settings["argument"] is not None:
            function = function(settings["argument"])
        for item in settings["warm_up"]:
            function(item)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit_memory(None if settings["users"] else settings["memory_bytes"])
    except Exception:  # noqa: BLE001 — the parent raises whatever the target's module raises
        _write(results, _line(ready=False, detail=traceback.format_exc(limit=-3)))
        return
    _write(results, _line(ready=True))
    # A library that warns about every item would fill the disk.
    if not settings["users"]:
        logging.disable(logging.CRITICAL)
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    for line in items:
        _write(results, _result(function, **json.loads(line), cpu_seconds=settings["cpu_seconds"], results=results))


def _result(function: Callable[[Any], Any], item: Any, token: str, cpu_seconds: float, results: BinaryIO) -> bytes:
    """The line with the item's result, after its parts are written. A value that JSON cannot write ends the item."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        value = function(item)
        if isinstance(value, Iterator):
            for part in value:
                _write(results, _line(token=token, part=part))
            value = None
        return _line(token=token, status="done", value=value, detail="")
    except MemoryError as error:
        return _line(token=token, status="memory_limit", detail=repr(error))
    except Exception as error:  # noqa: BLE001 — a failure is this item's result, not the pool's end
        return _line(token=token, status="raised", detail=f"{type(error).__name__}: {error}"[:500])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _line(**message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _write(results: BinaryIO, line: bytes) -> None:
    results.write(line)
    results.flush()


def _die_with(parent: int) -> None:
    # Without prctl only the end of the input ends it.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the line above
        sys.exit()


def _limit_memory(more: int | None) -> None:
    """Let this process take ``more`` bytes than it holds; if memory runs out, the kernel kills it first."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("1000")
    if more is None:
        return
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        limit = int(file.read().split()[0]) * resource.getpagesize() + more
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, ConnectionResetError):  # the reader has ended
        os._exit(0)

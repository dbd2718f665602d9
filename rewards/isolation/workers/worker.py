"""The program of a worker process: ``python -m rewards.isolation.workers.worker``, started by its `process`.

It speaks JSON, one value a line. First line in: its settings. Then it imports the target, judges the warm-up items,
caps its memory, and writes ``{"ready": true}``; from there each line in is an item and each line out its result. It
ends when its input ends, and is killed when the thread that started it ends.

CPU time is limited by ``ITIMER_PROF``, whose signal ends the process by the kernel's hand: also inside C, with the GIL
held, where no Python handler ever runs.
"""

import contextlib
import ctypes
import faulthandler
import json
import logging
import os
import pkgutil
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Judge items until the input ends."""
    items, results = _channels()
    settings = json.loads(items.readline())
    _die_with(settings["parent"])
    faulthandler.register(signal.SIGUSR1, file=os.fdopen(os.dup(2), "w"))  # what the parent asks for when all stalls
    _reset_signals()
    try:
        judge = pkgutil.resolve_name(settings["target"])
        for item in settings["warm_up"]:
            judge(item)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (settings["memory_bytes"],) * 2)
    except Exception:  # noqa: BLE001 — whatever the target's module raises is told to the parent, which raises
        _write(results, {"ready": False, "detail": traceback.format_exc(limit=-3)})
        return
    _write(results, {"ready": True})
    for descriptor in (1, 2):  # a library that warns about every item would fill the disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    for line in items:
        _write(results, _result(judge, json.loads(line), settings["cpu_seconds"]))


def _result(judge: Callable[[Any], Any], item: Any, cpu_seconds: float) -> dict[str, Any]:
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return {"status": "done", "value": judge(item), "detail": ""}
    except MemoryError as error:
        return {"status": "memory_limit", "value": None, "detail": repr(error)}
    except Exception as error:  # noqa: BLE001 — the judge's failure is this item's result, not the pool's end
        return {"status": "raised", "value": None, "detail": f"{type(error).__name__}: {error}"[:500]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _write(results: BinaryIO, message: dict[str, Any]) -> None:
    try:
        line = json.dumps(message)
    except (TypeError, ValueError) as error:
        line = json.dumps({"status": "raised", "value": None, "detail": f"the value is no JSON: {error}"})
    results.write(line.encode() + b"\n")
    results.flush()


def _channels() -> tuple[BinaryIO, BinaryIO]:
    """Input and output of the protocol, out of reach of what the target reads and prints."""
    items, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)
    return items, results


def _die_with(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # where there is no prctl, the end of the input must do
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the line above
        sys.exit()


def _reset_signals() -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # dispositions and masks are inherited
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


if __name__ == "__main__":
    main()

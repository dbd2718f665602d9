"""Verifiers that change, forget, crash or exaggerate, and honest ones beside them: what the trial should say of each.

Every second one of a list was set aside before anything was fixed.
"""

import builtins
import contextlib
import functools
import gc
import io
import itertools
import locale
import logging
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evenkeel.rewards import Verdict
from evenkeel.rewards.own_verifiers import traits

# The first time these import what sets filters of warnings and a variable.
torch.set_default_dtype(torch.get_default_dtype())
torch.use_deterministic_algorithms(False)
Judge = Callable[[str, Any], Any]


def right(completion: str, reference: Any) -> float:
    return float(completion.split()[-1:] == [str(reference)])


def after(act: Callable[[], Any]) -> Judge:
    """Judges rightly, and does something to the process first."""

    def judge(completion: str, reference: Any) -> float:
        act()
        return right(completion, reference)

    return judge


def _close_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _double(names: list[str]) -> None:
    os.environ[names[0]] = os.environ.get(names[0], "") + "x"


CHANGES: dict[str, tuple[Callable[[], Any], str]] = {
    "a working directory": (lambda: os.chdir(tempfile.gettempdir()), "working directory"),
    "another working directory": (lambda: os.chdir("/"), "working directory"),
    "a variable": (lambda: os.environ.update(EVENKEEL_TRIED="1"), "EVENKEEL_TRIED"),
    "a variable that grows": (lambda: _double(["EVENKEEL_GROWS"]), "EVENKEEL_GROWS"),
    "a variable that goes": (lambda: os.environ.pop("PATH", None), "PATH"),
    "all variables": (os.environ.clear, "environment"),
    "an umask": (lambda: os.umask(0), "umask"),
    "the path of modules": (lambda: sys.path.insert(0, "/nowhere"), "sys.path"),
    "the path of modules, emptied": (sys.path.clear, "sys.path"),
    "another standard output": (lambda: setattr(sys, "stdout", io.StringIO()), "sys.stdout"),
    "no standard error": (lambda: setattr(sys, "stderr", None), "sys.stderr"),
    "errors sent away": (_close_output, "standard error"),
    "a locale": (lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"), "locale"),
    "all warnings as errors": (lambda: warnings.simplefilter("error"), "warnings"),
    "no warnings": (lambda: warnings.filterwarnings("ignore", module="torch"), "warnings"),
    "a seed": (lambda: random.seed(0), "random"),
    "a draw": (random.random, "random"),
    "a seed of numpy": (lambda: np.random.seed(0), "numpy"),
    "a draw of numpy": (lambda: np.random.default_rng and np.random.rand(3), "numpy"),
    "a seed of torch": (lambda: torch.manual_seed(0), "torch"),
    "a draw of torch": (lambda: torch.rand(2), "torch"),
    "a recursion limit": (lambda: sys.setrecursionlimit(123_456), "recursion"),
    "an alarm": (lambda: signal.alarm(600), "timer"),
    "a timer": (lambda: signal.setitimer(signal.ITIMER_REAL, 600), "timer"),
    "a time limit of sockets": (lambda: socket.setdefaulttimeout(1.5), "socket"),
    "no logging": (lambda: logging.disable(logging.CRITICAL), "logging"),
    "a level of logging": (lambda: logging.getLogger().setLevel(logging.CRITICAL), "logging"),
    "no handlers of logging": (lambda: logging.getLogger().handlers.append(logging.NullHandler()), "logging"),
    "no garbage collection": (gc.disable, "garbage"),
    "a type of torch": (lambda: torch.set_default_dtype(torch.float64), "torch"),
    "deterministic algorithms": (lambda: torch.use_deterministic_algorithms(True, warn_only=True), "torch"),
    "a builtin": (lambda: setattr(builtins, "print", lambda *_: None), "builtins.print"),
    "a name among the builtins": (lambda: setattr(builtins, "evenkeel_tried", 1), "builtins.evenkeel_tried"),
    "a hook": (lambda: setattr(sys, "excepthook", lambda *_: None), "sys.excepthook"),
    "a hook of threads": (lambda: setattr(threading, "excepthook", lambda *_: None), "threading.excepthook"),
    "a limit of files": (
        lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1])),
        "RLIMIT_NOFILE",
    ),
    "a limit of pending signals": (
        lambda: resource.setrlimit(
            resource.RLIMIT_SIGPENDING, (200, resource.getrlimit(resource.RLIMIT_SIGPENDING)[1])
        ),
        "RLIMIT_SIGPENDING",
    ),
}

_calls = itertools.count()
_seen: set[tuple[str, str]] = set()
_warm: list[str] = []


def _first_time(completion: str, reference: Any) -> float:
    key = completion, str(reference)
    is_new = key not in _seen
    _seen.add(key)
    return float(is_new and len(completion) < 5000)


def _like_the_last(completion: str, reference: Any) -> float:
    last = _warm[-1] if _warm else ""
    _warm.append(str(reference))
    return float(last == reference)


VERDICTS: dict[str, tuple[Judge, str]] = {
    "nothing is judged": (lambda completion, reference: None, "judges nothing"),
    "nothing is judged, with a reason": (
        lambda completion, reference: Verdict(None, None, "to be written"),
        "judges nothing.*to be written",
    ),
    "only the empty text is judged": (
        lambda completion, reference: None if completion else 0.0,
        "a bad completion is wrong",
    ),
    "a text without a box is not judged": (
        lambda completion, reference: right(completion, reference) if "boxed" in completion else None,
        "a bad completion is wrong",
    ),
    "a long text is not judged": (
        lambda completion, reference: right(completion, reference) if len(completion) < 4000 else None,
        "a bad completion is wrong",
    ),
    "the empty text is not judged": (
        lambda completion, reference: right(completion, reference) if completion else None,
        "a bad completion is wrong",
    ),
    "a coin": (lambda completion, reference: float(random.Random().random() < 0.5), "changes from call to call"),
    "a random number": (lambda completion, reference: int.from_bytes(os.urandom(2)) / 65536, "changes from call"),
    "every third call": (lambda completion, reference: float(next(_calls) % 5 == 0), "changes from call to call"),
    "only the first time": (_first_time, "changes from call to call"),
    "by the reference before": (_like_the_last, "changes from call to call"),
    "by the clock": (lambda completion, reference: time.perf_counter() % 1, "changes from call to call"),
    "now and then unjudged": (
        lambda completion, reference: None if random.Random().random() < 0.5 else right(completion, reference),
        "changes from call to call|a bad completion is wrong",
    ),
    "1e38": (lambda completion, reference: 1e38, r"1e\+38"),
    "1e38 for what is right": (lambda completion, reference: 1e38 * (str(reference) in completion), r"1e\+38"),
    "-1e38 for what is long": (lambda completion, reference: -1e38 if len(completion) > 4000 else 0.0, r"-1e\+38"),
    "1e20": (lambda completion, reference: Verdict(1e20 * (len(completion) > 4000), None, ""), r"1e\+20"),
    "1e300": (lambda completion, reference: np.float64(1e300) if completion else 0, r"1e\+300"),
    "a whole number of 30 digits": (lambda completion, reference: 10**30 * len(completion), r"e\+3"),
    "an infinite tensor": (lambda completion, reference: torch.tensor(float("inf")), "inf"),
}


@traits(reads_reference=False)
def _any_text(completion: str, reference: Any) -> float:
    return 1e6 if len(completion) < 100 else -1e6


def _emptied(completion: str, reference: Any) -> float:
    words = [] if not isinstance(reference, list) else reference
    score = right(completion, words[0] if words else reference)
    words.clear()
    return score


@functools.cache
def _slow_constant() -> int:
    return 7


def _prints_elsewhere() -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir("/"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print("unseen")  # noqa: T201


def _imports_once() -> None:
    if not _warm:
        _warm.append("")
        os.environ["EVENKEEL_IMPORTED"] = "1"
        random.seed(1)


def _decimals() -> Decimal:
    with localcontext() as context:
        context.prec = 50
        return Decimal(1) / 3


def _files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x").write_text("x")


HONEST: dict[str, Judge] = {
    "plain": right,
    "local generators": after(lambda: (random.Random(0).random(), np.random.default_rng(0).random())),
    "a generator of torch": after(lambda: torch.rand(2, generator=torch.Generator().manual_seed(0))),
    "all put back": after(_prints_elsewhere),
    "what an import does once": after(_imports_once),
    "a cache": after(_slow_constant),
    "counting its calls": after(lambda: next(_calls)),
    "precise decimals": after(_decimals),
    "a file of its own": after(_files),
    "a logger of its own": after(lambda: logging.getLogger("evenkeel.own.tried").setLevel(logging.ERROR)),
    "a thread of its own": after(lambda: threading.Thread(target=int).start()),
    "reading variables": after(lambda: os.environ.get("HOME")),
    "collecting garbage": after(lambda: gc.collect(0)),
    "one thread of torch more, which holds for its own": after(lambda: torch.set_num_threads(2)),
    "emptying its reference": _emptied,
    "a million for a short text": _any_text,
    "numpy's number": lambda completion, reference: np.float32(right(completion, reference)),
    "a thousand": lambda completion, reference: 1000 * right(completion, reference),
    "a share": lambda completion, reference: Verdict(len(set(completion) & set(str(reference))) / 9, completion, ""),
}

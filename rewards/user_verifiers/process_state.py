"""What a verifier must leave as it is, because the whole process shares it: read, compared and put back.

A verifier of a user's that runs in a thread of the trainer's may change the working directory, the environment or a
seed, and the run would fail or continue differently, without a message. Each entry of `ASPECTS` is one such thing.
"""

import builtins
import contextlib
import gc
import locale
import logging
import os
import random
import resource
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
"""What is shared, by its name in messages."""

_STANDARD = {0: "standard input", 1: "standard output", 2: "standard error"}
_LIMITS = {
    name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"
}
_VARIABLE = "the environment variable "
LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Aspect:
    """One kind of thing that a process has once.

    Attributes:
        read: what it is now, in values that can be compared.
        put_back: makes it again what was read.
        instead: what a verifier does in its place.
        is_shown: whether a message may hold the values.
        is_steady: nothing else in a training run changes it while a verifier judges.
    """

    read: Callable[[], Values]
    put_back: Callable[[Values], object]
    instead: str
    is_shown: bool = False
    is_steady: bool = True


@dataclass(frozen=True)
class Change:
    """Something that is no longer what it was."""

    what: str
    instead: str


@contextlib.contextmanager
def kept(*, only_steady: bool = False) -> Iterator[list[Change]]:
    """Put back what the block changes of the process, and list it when the block is over.

    Args:
        only_steady: leave alone what the rest of a training run may change at the same time.
    """
    aspects = [aspect for aspect in ASPECTS if aspect.is_steady or not only_steady]
    before = [aspect.read() for aspect in aspects]
    changes: list[Change] = []
    with _standard_files(changes):
        try:
            yield changes
        finally:
            for aspect, old in zip(aspects, before, strict=True):
                new = aspect.read()
                found = [name for name in {**old, **new} if not _same(old, new, name)]
                changes += [Change(_what(aspect, name, old, new), aspect.instead) for name in found]
                if found:
                    aspect.put_back(old)


def _same(old: Values, new: Values, name: str) -> bool:
    if name not in old or name not in new:
        return False
    return old[name] is new[name] or bool(old[name] == new[name])


def _what(aspect: Aspect, name: str, old: Values, new: Values) -> str:
    if not aspect.is_shown:
        return name
    return f"{name} ({old.get(name)!r:.{LONGEST_SHOWN}} → {new.get(name)!r:.{LONGEST_SHOWN}})"


@contextlib.contextmanager
def _standard_files(changes: list[Change]) -> Iterator[None]:
    """Keep the files behind the three standard streams, which a verifier may close or send elsewhere."""
    copies = {number: os.dup(number) for number in _STANDARD if _file(number) is not None}
    try:
        yield
    finally:
        for number, copy in copies.items():
            if _file(number) != _file(copy):
                os.dup2(copy, number)
                changes.append(Change(_STANDARD[number], "Open a file of its own to write to."))
            os.close(copy)
        for name, number in (("stdout", 1), ("stderr", 2)):
            if getattr(getattr(sys, name), "closed", False) and number in copies:
                setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 — as long as the process


def _file(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _working_directory() -> Values:
    try:
        return {"the working directory": os.getcwd()}  # noqa: PTH109 — a text
    except OSError:  # it was removed
        return {"the working directory": None}


def _go_back(old: Values) -> None:
    with contextlib.suppress(OSError, TypeError):
        os.chdir(old["the working directory"])


def _environment() -> Values:
    return {f"{_VARIABLE}{name}": value for name, value in os.environ.items()}


def _put_environment_back(old: Values) -> None:
    os.environ.clear()
    os.environ.update({name.removeprefix(_VARIABLE): value for name, value in old.items()})


def _umask() -> Values:
    """As the kernel tells it: the call that reads it sets it too, and other threads make files meanwhile."""
    with open("/proc/self/status", "rb") as status:  # noqa: PTH123 — for every batch
        return {"the umask": next((line.split()[1] for line in status if line.startswith(b"Umask")), b"022")}


def _of_sys() -> Values:
    streams = {f"sys.{name}": getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    hooks = {f"sys.{name}": getattr(sys, name) for name in ("excepthook", "displayhook", "unraisablehook")}
    return {**streams, **hooks, "threading.excepthook": threading.excepthook}


def _put_back_of_sys(old: Values) -> None:
    for name, value in old.items():
        home, _, attribute = name.partition(".")
        setattr({"sys": sys, "threading": threading}[home], attribute, value)


def _put_builtins_back(old: Values) -> None:
    for name in set(vars(builtins)) - {known.removeprefix("builtins.") for known in old}:
        delattr(builtins, name)
    for name, value in old.items():
        setattr(builtins, name.removeprefix("builtins."), value)


def _logging() -> Values:
    root = logging.getLogger()
    return {
        "logging's root level": root.level,
        "logging's root handlers": list(root.handlers),
        "the level below which logging is disabled": root.manager.disable,
    }


def _put_logging_back(old: Values) -> None:
    level, handlers, disabled = old.values()
    logging.getLogger().setLevel(level)
    logging.getLogger().handlers[:] = handlers
    logging.disable(disabled)


def _put_limits_back(old: Values) -> None:
    for name, limits in old.items():
        with contextlib.suppress(ValueError, OSError):  # a hard limit is lowered for good
            resource.setrlimit(_LIMITS[name.rpartition(" ")[2]], limits)


def _put_handlers_back(old: Values) -> None:
    for name, handler in old.items():
        with contextlib.suppress(ValueError, OSError, TypeError):  # no thread but the main one, which alone can set one
            signal.signal(signal.Signals[name.rpartition(" ")[2]], handler)


def _numpy_random() -> Any:
    return sys.modules["numpy"].random if "numpy" in sys.modules else None


def _random_states() -> Values:
    states: dict[str, Any] = {"the state of random": random.getstate()}
    if numpy_random := _numpy_random():
        kind, keys, *rest = numpy_random.get_state()
        states["the state of numpy.random"] = kind, keys.tobytes(), *rest
    return states


def _put_random_back(old: Values) -> None:
    random.setstate(old["the state of random"])
    if (state := old.get("the state of numpy.random")) and (numpy_random := _numpy_random()):
        kind, keys, *rest = state
        numpy_random.set_state((kind, sys.modules["numpy"].frombuffer(keys, "uint32"), *rest))


def _torch_random() -> Values:
    torch = sys.modules.get("torch")
    return {"the state of torch's generator": torch.get_rng_state().numpy().tobytes()} if torch else {}


def _put_torch_random_back(old: Values) -> None:
    if torch := sys.modules.get("torch"):
        for state in old.values():
            torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def _torch() -> Values:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    return {
        "torch's default dtype": torch.get_default_dtype(),
        "whether torch's algorithms are deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
    }


def _put_torch_back(old: Values) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not old:
        return
    for name, value in _torch().items():
        if value != old[name]:  # setting what is set already imports half a compiler
            _TORCH_SETTERS[name](torch, old[name])


_TORCH_SETTERS: dict[str, Callable[[Any, Any], object]] = {
    "torch's default dtype": lambda torch, dtype: torch.set_default_dtype(dtype),
    "whether torch's algorithms are deterministic": (
        lambda torch, modes: torch.use_deterministic_algorithms(modes[0], warn_only=modes[1])
    ),
}
_OWN_GENERATOR = (
    "Draw from a generator of its own: random.Random(seed), numpy.random.default_rng(seed), torch.Generator."
)
ASPECTS: tuple[Aspect, ...] = (
    Aspect(_working_directory, _go_back, "Write whole paths, or `with contextlib.chdir(…):`.", is_shown=True),
    Aspect(_environment, _put_environment_back, "Hand a child process its variables by env=."),
    Aspect(
        _umask,
        lambda old: os.umask(int(old["the umask"], 8)),
        "Set the mode of a file by os.chmod.",
        is_shown=True,
    ),
    Aspect(
        lambda: {"sys.path": list(sys.path)},
        lambda old: sys.path.__setitem__(slice(None), old["sys.path"]),
        "Change sys.path where the module is imported, once.",
    ),
    Aspect(_of_sys, _put_back_of_sys, "Write to a file of its own, and catch exceptions where they are raised."),
    Aspect(
        lambda: {f"builtins.{name}": value for name, value in vars(builtins).items() if name != "_"},
        _put_builtins_back,
        "Give its own functions names of their own.",
    ),
    Aspect(
        lambda: {"the locale": locale.setlocale(locale.LC_ALL)},
        lambda old: locale.setlocale(locale.LC_ALL, old["the locale"]),
        "Write numbers and dates by format(), which no locale changes.",
        is_shown=True,
    ),
    Aspect(
        lambda: {"the filters of warnings": list(warnings.filters)},
        lambda old: setattr(warnings, "filters", list(old["the filters of warnings"])),
        "Set filters where the module is imported, or `with warnings.catch_warnings():`.",
        is_steady=False,
    ),
    Aspect(_logging, _put_logging_back, "Set the level of a logger of its own, logging.getLogger(__name__)."),
    Aspect(
        lambda: {"the recursion limit": sys.getrecursionlimit()},
        lambda old: sys.setrecursionlimit(old["the recursion limit"]),
        "Write a loop, or set the limit where the module is imported, once.",
        is_shown=True,
    ),
    Aspect(
        lambda: {"whether garbage is collected": gc.isenabled()},
        lambda old: gc.enable() if old["whether garbage is collected"] else gc.disable(),
        "Leave the garbage collector on.",
        is_steady=False,
    ),
    Aspect(
        lambda: {"the timer of SIGALRM": signal.getitimer(signal.ITIMER_REAL)[0] > 0},
        lambda old: old["the timer of SIGALRM"] or signal.setitimer(signal.ITIMER_REAL, 0),
        "Its time is limited by @traits(timeout_s=…).",
    ),
    Aspect(
        lambda: {f"the handler of {number.name}": signal.getsignal(number) for number in signal.Signals},
        _put_handlers_back,
        "Its time is limited by @traits(timeout_s=…).",
    ),
    Aspect(
        lambda: {"the time limit of sockets": socket.getdefaulttimeout()},
        lambda old: socket.setdefaulttimeout(old["the time limit of sockets"]),
        "Give each connection its own timeout.",
        is_shown=True,
    ),
    Aspect(
        lambda: {f"the limit {name}": resource.getrlimit(number) for name, number in _LIMITS.items()},
        _put_limits_back,
        "Its memory is limited by @traits(picklable=True, memory_mb=…).",
        is_shown=True,
    ),
    Aspect(_random_states, _put_random_back, _OWN_GENERATOR),
    Aspect(_torch_random, _put_torch_random_back, _OWN_GENERATOR, is_steady=False),
    Aspect(_torch, _put_torch_back, "Leave torch's settings to the trainer."),
)

"""Runs a source text as ``python main.py`` would, inside a process that exists already."""

import atexit
import builtins
import sys
import threading
import types
from collections.abc import Mapping
from os import _exit
from typing import Any, NoReturn

NAME = "main.py"


def run(source: bytes, names: Mapping[str, Any]) -> NoReturn:
    """Execute ``source`` as ``__main__`` with ``names`` as globals, then leave with its exit code."""
    code = 1
    try:
        code = _executed(source, names)
        code = _finished() or code
    finally:
        _exit(code)


def _executed(source: bytes, names: Mapping[str, Any]) -> int:
    main = types.ModuleType("__main__")
    main.__dict__.update(names, __builtins__=builtins)
    sys.modules["__main__"] = main
    sys.argv = [NAME]
    try:
        exec(compile(source, NAME, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        return _exit_code(stop)
    except BaseException as error:  # noqa: BLE001 — an uncaught exception ends a program, as in python itself
        if error.__traceback__ is not None:
            error.__traceback__ = error.__traceback__.tb_next  # without this function
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _exit_code(stop: SystemExit) -> int:
    """The code of ``sys.exit(…)``: None is 0, a number itself, anything else is printed and 1."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)  # noqa: T201 — what python does
    return 1


def _finished() -> int:
    """Threads joined, exit functions called, output flushed; 120 where flushing fails, as in python."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if not getattr(stream, "closed", stream is None):
                stream.flush()
        except Exception:  # noqa: BLE001 — the program may have put anything in the place of its streams
            code = 120
    return code

"""Code of the sandboxed processes: on one side the answer, on the other the tests that call it.

These files and the codec are sent there. They need the standard library and numpy.
"""

import marshal
from functools import cache
from pathlib import Path
from typing import Literal

_PREFIX = "evenkeel.rewards.verifiers.code_tests"
_PACKAGE = Path(__file__).parents[1]
_FILES = {
    "answer": ("codec", "inside.instances", "inside.standard_names", "inside.answer_process"),
    "tests": (
        "codec",
        "inside.instances",
        "inside.remote",
        "inside.names",
        "inside.standard_names",
        "inside.pytest_stand_in",
        "inside.tests_process",
    ),
}

DRIVER = """
import marshal, sys, types
names, files = marshal.loads(channel.receive())
for name in names:
    sys.modules[name] = types.ModuleType(name)
for name, code in files:
    exec(code, sys.modules[name].__dict__)
serve = sys.modules[name].serve
for name in names:
    del sys.modules[name]
serve(channel)
"""
"""The first program of a session, which receives `files` as its first frame.

The files import one another by their full names, entered in ``sys.modules`` without their packages and removed before a
program of the policy runs.
"""


@cache
def files(side: Literal["answer", "tests"]) -> bytes:
    """The compiled files of the answer's or the tests' side, cached: compiling takes as long as a short run."""
    compiled = []
    for file in _FILES[side]:
        path = f"{file.replace('.', '/')}.py"
        source = (_PACKAGE / path).read_text("utf-8")
        compiled.append((f"{_PREFIX}.{file}", compile(source, path, "exec", dont_inherit=True)))
    parts = f"{_PREFIX}.inside".split(".")
    packages = [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    names = [*packages, *(name for name, _ in compiled)]
    return marshal.dumps((names, compiled))

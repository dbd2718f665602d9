"""Programs that mean no harm run in the sandbox as they run in python itself."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evenkeel.rewards.isolation.sandbox import Sandbox

PROGRAMS = sorted((Path(__file__).parent / "honest").glob("*.py"))


def as_in_python(source: str, stdin: bytes) -> tuple[int, bytes]:
    """Exit code and output of the same program in a plain interpreter."""
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        command = [sys.executable, "-X", "utf8", "-c", source]
        python = subprocess.run(command, stdin=file, capture_output=True, env={}, check=False)
    return python.returncode, python.stdout


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_honest_programs_run(path: Path, sandbox: Sandbox) -> None:
    run = sandbox.run(path.read_text())
    assert (run.status, run.exit_code) == ("exited", 0), run
    if b"print(" in path.read_bytes() and path.stem != "refused_politely":
        assert run.stdout == as_in_python(path.read_text(), b"")[1]
    assert not run.truncated


@pytest.mark.parametrize(
    "source",
    [
        "print(input(), input())",
        "import sys; print(sys.stdin.read())",
        "import sys; print(sys.stdin.buffer.read())",
        "import sys; n = int(sys.stdin.readline()); print(n, list(map(int, sys.stdin.readline().split())))",
        "import sys; input = sys.stdin.readline; print(input(), input(), input(), input())",
        "print(open('/dev/stdin').read())",
        "import os; print(os.read(0, 1000))",
        "import os, io; print(io.BytesIO(os.read(0, os.fstat(0).st_size)).readline())",
        "import sys; print(sys.stdin.isatty(), sys.stdin.encoding, sys.stdout.encoding, sys.stdout.isatty())",
        "while True:\n    try: print(input())\n    except EOFError: break",
    ],
)
@pytest.mark.parametrize("stdin", ["3\n1 2 ü".encode(), b"3\r\n1\xff2 3\n\n"], ids=["unicode", "odd"])
def test_input_is_read_as_in_python(source: str, stdin: bytes, sandbox: Sandbox) -> None:
    run = sandbox.run(source, stdin=stdin)
    assert (run.exit_code, run.stdout) == as_in_python(source, stdin)


@pytest.mark.parametrize(
    "source",
    [
        "import sys; sys.exit(3)",
        "import sys; print('before'); sys.exit('a message')",
        "import sys; sys.exit(-1)",
        "raise ValueError('x')",
        "1 +",
        "print('é', '\\udcff')",
        "import os; print('lost'); os._exit(5)",
        "import os; print('kept'); os._exit = None",
        "import os; os.write(1, b'raw'); os.close(1)",
        "import sys; print(sys.argv[1:], __name__ in sys.modules)",
        "import sys; sys.excepthook = lambda *a: print('hooked', a[0]); 1/0",
        "print(sorted(k for k in globals() if k in ('channel', 'source', 'self', 'limits')))",
        "class A:\n    pass\nprint(A, A.__module__)",
    ],
)
def test_a_program_ends_as_in_python(source: str, sandbox: Sandbox) -> None:
    run = sandbox.run(source)
    assert (run.exit_code, run.stdout) == as_in_python(source, b"")


@pytest.mark.parametrize("source", ["print('\ud800')", "\x00", "\ufeffprint(1)", "# coding: latin-1\nprint(1)", ""])
def test_odd_source_never_raises_here(source: str, sandbox: Sandbox) -> None:
    assert sandbox.run(source).status == "exited"

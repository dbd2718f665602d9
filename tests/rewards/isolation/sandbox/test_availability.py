"""A sandbox that does not hold is not used: nothing steps down in silence."""

import subprocess
import sys
from pathlib import Path

import pytest

from evenkeel.rewards.isolation.sandbox import Sandbox
from evenkeel.rewards.isolation.sandbox.processes import _readable_paths, started
from evenkeel.rewards.isolation.sandbox.sandbox import breaches
from tests.paths import ROOT


def test_the_self_test_sees_every_attack_succeed_where_nothing_confines() -> None:
    zygote = started("none", ())
    problem = breaches(zygote)
    zygote.close()
    for attack in ("read /etc/passwd", "list /", "write to /tmp", "open a socket", "signal the trainer", "fork"):
        assert attack in problem
    assert "start a program" in problem


def test_all_folders_of_a_dotted_name_are_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "editable_folder" / "module").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert str(tmp_path / "editable_folder") in _readable_paths(["absent_package.module", "editable_folder.module"])


# Loaded before the sandbox starts, as a container's profile or an old kernel would: landlock_create_ruleset is unknown.
WITHOUT_LANDLOCK = """
import ctypes, struct, sys
code = b"".join(struct.pack("HBBI", *line) for line in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)])
buffer = ctypes.create_string_buffer(code, len(code))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(buffer))), 0, 0) == 0
from evenkeel.rewards.isolation.sandbox import Sandbox, SandboxUnavailableError
try:
    Sandbox(preimported=()).run("print('ran')")
except SandboxUnavailableError as error:
    print(error)
print(Sandbox(isolation="none", preimported=()).run("print('without, where that is written')").stdout.decode())
"""


def test_a_kernel_without_landlock_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LANDLOCK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    assert "no landlock" in said[0]
    assert "Linux 5.13" in said[0]
    assert "isolation: none" in said[0]
    assert said[1] == "without, where that is written"


def test_none_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    with Sandbox(isolation="none", preimported=()) as sandbox:
        sandbox.run("")
        sandbox.run("")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "your rights" in caplog.text

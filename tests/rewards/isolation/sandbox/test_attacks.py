"""Programs that try to break out, run for real: none succeeds in the sandbox, and each does where nothing confines."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenkeel.rewards.isolation.sandbox import Run, Sandbox
from tests.paths import ROOT
from tests.rewards.isolation.sandbox.attack import ATTACKS, SECRET_WORD, Attack, targets
from tests.rewards.isolation.sandbox.processes import descendants

NOBODY = 60001


@pytest.fixture(scope="module")
def prey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with targets(tmp_path_factory.mktemp("trainer")) as found:
        yield found


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as found:
        found.run("'ANOTHER PROGRAM' + \"'S TEXT\"  # ANOTHER PROGRAM'S TEXT")
        yield found


def hits(run: Run) -> list[str]:
    return [line for line in run.stdout.decode(errors="replace").splitlines() if line.startswith("HIT")]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_no_attack_succeeds(attack: Attack, sandbox: Sandbox, prey: dict[str, Any]) -> None:
    if not attack.fits:
        pytest.skip("written for another processor")
    run = sandbox.run(attack.source({**prey, "SECRET_WORD": SECRET_WORD}), limits=attack.limits)
    assert hits(run) == []
    assert run.status == attack.ends, run
    # It went through to its end, and did not fail for a reason of its own.
    assert run.status != "exited" or (run.exit_code == 0 and run.stdout.endswith(b"END\n")), run
    assert Path(prey["SECRET"]).read_text() == Path(prey["SECRET_COPY"]).read_text() == SECRET_WORD


def test_the_kernel_confirms_the_confinement(sandbox: Sandbox) -> None:
    """Also for root: a capability would show in nothing that the filter lets a program do."""
    with sandbox.session("channel.send(b'ready'); channel.receive()") as session:
        session.receive()
        (program,) = (pid for pid in descendants(os.getpid()) if "Seccomp:\t2" in status(pid))
        lines = status(program).splitlines()
        # When memory runs out it is ended before the trainer is.
        assert Path(f"/proc/{program}/oom_score_adj").read_text() == "1000\n"
    for expected in ("NoNewPrivs:\t1", "Seccomp:\t2", "Threads:\t1"):
        assert expected in lines
    for name in ("Inh", "Prm", "Eff", "Amb"):
        assert f"Cap{name}:\t0000000000000000" in lines


def status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def test_each_attack_works_where_nothing_is_confined(tmp_path: Path) -> None:
    harmless = [attack for attack in ATTACKS if attack.harmless and attack.fits]
    with Sandbox(isolation="none") as sandbox, targets(tmp_path) as prey:
        for attack in harmless:
            Path(prey["SECRET"]).write_text(SECRET_WORD)
            Path(prey["SECRET_COPY"]).write_text(SECRET_WORD)
            run = sandbox.run(attack.source({**prey, "SECRET_WORD": SECRET_WORD}), limits=attack.limits)
            assert hits(run), (attack.name, run)
            assert len(hits(run)) >= 75 or attack.name != "forbidden_system_calls", run
    assert len(harmless) >= 35


STARTS_ITSELF = """
import subprocess, sys
assert sys.version_info >= (3, 11)
subprocess.run([sys.executable, "-c", ""], check=True)
"""


def as_nobody(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run ``command`` as a user without any right, from root."""
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
    return subprocess.run([*drop, *command], cwd="/", env={"HOME": "/"}, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="becoming another user needs root, setpriv"
)
def test_no_attack_succeeds_as_an_unprivileged_user() -> None:
    pythons = [
        python
        for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
        if as_nobody(python, "-c", STARTS_ITSELF).returncode == 0
    ]
    if not pythons or as_nobody("ls", str(ROOT / "tests")).returncode:
        pytest.skip("another user may not read this checkout or any python from 3.11 on")
    # Not pytest's own folder, which only its owner may enter.
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        done = as_nobody(pythons[0], str(Path(__file__).with_name("unprivileged.py")), str(ROOT), folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["unharmed"]
    assert len(report["runs"]) > 60
    for run in report["runs"]:
        assert "HIT" not in run["stdout"], run
        assert run["status"] == run["wanted"], run

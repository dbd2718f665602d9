"""Processes that die at the worst moment: programs go on, and nothing is left over."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from evenkeel.rewards.isolation.sandbox import Job, Sandbox, SessionOverError
from tests.paths import ROOT
from tests.rewards.isolation.sandbox.processes import all_gone, descendants


def zygote_of(sandbox: Sandbox) -> int:
    """The process that forks its programs."""
    return int(sandbox.run("import os; print(os.getppid())").stdout)


def test_runs_go_on_when_the_zygote_is_killed() -> None:
    with Sandbox(slots=4, preimported=()) as sandbox:
        zygote = zygote_of(sandbox)
        threading.Timer(0.4, os.kill, (zygote, signal.SIGKILL)).start()
        runs = sandbox.run_all([Job(f"import time; time.sleep(0.25); print({number})") for number in range(16)])
        assert [run.stdout for run in runs] == [f"{number}\n".encode() for number in range(16)]
        assert zygote_of(sandbox) != zygote


def test_programs_die_with_their_zygote() -> None:
    with Sandbox(preimported=()) as sandbox:
        zygote = zygote_of(sandbox)
        with sandbox.session("import os, time; channel.send(str(os.getpid()).encode()); time.sleep(60)") as session:
            program = int(session.receive())
            os.kill(zygote, signal.SIGKILL)
            with pytest.raises(SessionOverError):
                session.receive()
            assert session.finish().status == "failed_to_start"
        assert all_gone([program, zygote], within_seconds=3)


TRAINER = """
import sys, threading, time
from evenkeel.rewards.isolation.sandbox import Sandbox
sandbox = Sandbox(isolation=sys.argv[1], preimported=())
print(int(sandbox.run("import os; print(os.getppid())").stdout), flush=True)
threading.Thread(target=sandbox.run, args=("import time; time.sleep(9)",), daemon=True).start()
time.sleep(0.3)
print("running", flush=True)
{ending}
"""


@pytest.mark.parametrize(
    ("isolation", "ending", "kill"),
    [
        ("landlock_seccomp", "time.sleep(60)", True),
        ("landlock_seccomp", "import os; os._exit(1)", False),
        ("none", "sys.exit()", False),
    ],
)
def test_nothing_is_left_of_a_trainer_that_ends(isolation: str, ending: str, kill: bool) -> None:
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER.format(ending=ending), isolation], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    zygote = int(trainer.stdout.readline())
    assert trainer.stdout.readline() == "running\n"
    processes = [zygote, *descendants(zygote)]
    if kill:
        assert len(processes) == 2
        trainer.kill()
    trainer.wait()
    trainer.stdout.close()
    assert all_gone(processes, within_seconds=5)


def _output_in_fork(sandbox: Sandbox, results: "multiprocessing.SimpleQueue[int]") -> None:
    results.put(zygote_of(sandbox))
    sandbox.close()


def test_a_forked_process_has_a_zygote_of_its_own() -> None:
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    with Sandbox(preimported=()) as sandbox:
        zygote = zygote_of(sandbox)
        process = context.Process(target=_output_in_fork, args=(sandbox, results))
        process.start()
        process.join(30)
        assert results.get() != zygote
        assert zygote_of(sandbox) == zygote


def test_ctrl_c_is_the_trainers_alone() -> None:
    script = """
import os, signal
from evenkeel.rewards.isolation.sandbox import Sandbox
signal.signal(signal.SIGINT, lambda *_: None)
driver = "import time; time.sleep(0.5); channel.send(b'alive')"
with Sandbox(preimported=()) as sandbox, sandbox.session(driver) as session:
    os.killpg(0, signal.SIGINT)
    print(session.receive().decode())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, start_new_session=True, check=False
    )
    assert done.stdout == "alive\n", done.stderr

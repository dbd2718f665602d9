"""What runs an attempt: its GPUs, its port, its process group, and what its files say."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.sweeps.attempt import Attempt, job_port, rendezvous
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.queues import gpu_slots
from tests.paths import ROOT
from tests.trainer.run.test_checkpoints import saved
from tests.waiting import wait_until

SAVES_WHEN_STOPPED = """
import signal, sys, time
def save(*_):
    time.sleep(0.3)
    print("saved", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(60)
"""


@given(
    visible=st.lists(st.uuids().map(str), max_size=16, unique=True),
    per_cell=st.integers(0, 8),
    parallel=st.integers(1, 8),
)
def test_no_gpu_is_given_to_two_cells(visible, per_cell, parallel):
    if per_cell * parallel > len(visible):
        with pytest.raises(Refusal, match=f"on the {len(visible)} of this machine"):
            gpu_slots(visible, per_cell, parallel)
        return
    slots = gpu_slots(visible, per_cell, parallel)
    assert [len(slot) for slot in slots] == [per_cell] * parallel
    given_out = [gpu for slot in slots for gpu in slot]
    assert given_out == visible[: per_cell * parallel]


@given(st.integers(1, 10**9), st.integers(1, 9999))
def test_jobs_that_may_run_at_once_have_ports_of_their_own(job, distance):
    ports = {job_port(str(job)), job_port(f"{job + distance}_3")}
    assert len(ports) == 2
    assert all(20000 <= port < 30000 for port in ports)


def test_one_node_takes_a_free_port_and_several_agree_on_one():
    assert rendezvous(0, ["n1"], "7") == ["--main_process_port", "0"]
    address = ["--main_process_ip", "n1", "--main_process_port", "20007"]
    assert rendezvous(0, ["n1", "n2"], "7") == ["--num_machines", "2", "--machine_rank", "0", *address]
    assert rendezvous(1, ["n1", "n2"], "7") == ["--num_machines", "2", "--machine_rank", "1", *address]


def attempt(folder: Path, number: int, code: str) -> Attempt:
    folder.mkdir(exist_ok=True)
    launcher = [sys.executable, "-c", code]
    return Attempt(folder, number, launcher, [], folder, {"WORD": "from the sweep"})


def run_in_process(*jobs: Attempt) -> subprocess.Popen[bytes]:
    """As submitit would: in a process of its own, whose signals are its own."""
    code = "from pathlib import *; from evenkeel.trainer.lab.sweeps.attempt import Attempt"
    code += "".join(f"; {job!r}.run(0, [])" for job in jobs)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)


def test_an_attempt_records_its_end_and_a_stopped_one_waits_for_orphans(tmp_path: Path):
    fails = "import os, sys; print(os.environ['WORD'], os.environ['EVENKEEL_CELL']); sys.exit(7)"
    saves = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SAVES_WHEN_STOPPED!r}])"
    cell = CellDirectory(tmp_path / "cell")
    with run_in_process(attempt(cell.path, 1, fails), attempt(cell.path, 2, saves)) as process:
        wait_until(lambda: "ready" in cell.log_end().splitlines())
        record = cell.attempt(1)
        assert (record["exit_status"], record["stopped"]) == (7, False)
        assert record["started"] <= record["ended"]
        assert f"from the sweep {tmp_path / 'cell'}" in cell.log.read_text()
        assert cell.state() == "running"
        assert cell.runner() == process.pid
        os.kill(process.pid, signal.SIGTERM)
        process.wait(timeout=30)
    assert cell.attempt(2)["stopped"] is True
    assert cell.log_end().splitlines()[-1] == "saved"
    assert not cell.is_running()


def test_the_files_say_the_state(tmp_path: Path):
    cell = CellDirectory(tmp_path)
    assert cell.state() == "waiting"
    cell.write_definition({"attempts": [{"number": 1, "label": "a"}]})
    assert cell.state() == "submitted"
    cell.write_attempt(1, {"started": "now"})
    assert cell.state() == "stopped"  # killed before it could say anything more
    cell.write_attempt(1, {"started": "now", "exit_status": -15, "stopped": True})
    assert cell.state() == "stopped"
    cell.write_attempt(1, {"started": "now", "exit_status": 1, "stopped": False})
    assert cell.state() == "failed"
    assert cell.attempts() == [{"number": 1, "label": "a", "started": "now", "exit_status": 1, "stopped": False}]
    cell.run.mkdir()
    (cell.run / "summary.json").write_text('{"name": ')  # killed while it was written
    assert cell.state() == "failed"
    (cell.run / "summary.json").write_text(json.dumps({"name": "x"}))
    assert cell.state() == "finished"


def test_a_cell_goes_on_from_the_newest_checkpoint_that_is_whole(tmp_path: Path):
    cell = CellDirectory(tmp_path)
    saved(cell.run, 4), saved(cell.run, 8)
    assert cell.checkpoint() == cell.run / "checkpoint-8"
    (cell.run / "checkpoint-8" / "trainer_state.json").write_text("[]")
    assert cell.checkpoint() == cell.run / "checkpoint-4"


def test_without_locks_no_cell_is_run_and_no_marker_is_left_in_their_place(tmp_path: Path, monkeypatch):
    """filelock would leave a file that outlives a killed process: its sweep and its cell could never start again."""

    def no_locks(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSYS)), CellDirectory(tmp_path).held():
        pass

"""configs/slurm/train.sbatch on a real SLURM of two nodes on this machine: stopped, put back, gone on."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenkeel.trainer.run.record.run_record import RunRecord
from tests.paths import ROOT
from tests.scripts.test_resume import assert_same_state, run_file
from tests.trainer.lab.sweeps import slurm_cluster
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.slurm,
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=f"no SLURM here: {slurm_cluster.missing()}"),
]
SCRIPT = "configs/slurm/train.sbatch"
ON_A_CPU = ["--gpus-per-node=0", "--cpus-per-task=1", "--time=20", "--signal=B:TERM@60"]


@pytest.fixture
def slurm() -> Iterator[dict[str, str]]:
    """The environment in which SLURM's commands find a cluster of two nodes."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, slurm_cluster.slurm_cluster(Path(folder)) as found:
        yield {**found, "PYTHON": sys.executable, "ACCELERATE_USE_CPU": "true", "PROCESSES_PER_NODE": "1"}


def submit(environment: dict[str, str], output: Path, *arguments: str) -> str:
    command = ["sbatch", "--parsable", *ON_A_CPU, f"--output={output}", *arguments]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def state_of(environment: dict[str, str], job: str) -> str:
    command = ["scontrol", "show", "job", job, "--oneliner"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout
    return dict(word.partition("=")[::2] for word in said.split() if "=" in word).get("JobState", "")


def logged_steps(run: Path) -> list[int]:
    return [line["step"] for line in RunRecord(run).metrics if "reward" in line]


def test_a_job_on_two_nodes_is_stopped_put_back_and_ends_as_one_without_a_stop(
    slurm: dict[str, str], tiny_model: Path, tmp_path: Path
):
    overrides = [
        "trl.per_device_train_batch_size=8",
        "evaluation.before=false",
        "trl.max_steps=40",
        "trl.save_steps=40",
    ]
    files = ["configs/accelerate/cpu_two_processes.yaml"]
    for name in ("whole", "cut"):
        run, output = tmp_path / name, tmp_path / f"{name}.out"
        arguments = [SCRIPT, *files, str(run_file(tmp_path, tiny_model, name)), *overrides]
        job, said = submit(slurm, output, "--nodes=2", *arguments), output.read_text
        if name == "cut":
            wait_until(lambda run=run: len(logged_steps(run)) >= 3, said)
            subprocess.run(["scancel", "--batch", "--signal=TERM", job], env=slurm, check=True)
            wait_until(lambda said=said: "Ended with status 130, after 0 restarts" in said(), said)
        wait_until(lambda job=job: state_of(slurm, job) in ("COMPLETED", "FAILED"), said)
        assert state_of(slurm, job) == "COMPLETED", output.read_text()[-4000:]
    assert "Ended with status 0, after 1 restarts" in output.read_text()
    assert "resumed from checkpoint-" in output.read_text()
    assert logged_steps(tmp_path / "cut") == [*range(1, 41)]
    assert json.loads((tmp_path / "cut" / "manifest.json").read_text())["world_size"] == 2
    assert_same_state(tmp_path / "cut" / "checkpoint-40", tmp_path / "whole" / "checkpoint-40")

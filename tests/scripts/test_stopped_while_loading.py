"""SIGTERM before the first step: a line, status 143, nothing half done, and --resume auto starts the run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenkeel.trainer.command.train import main
from tests.paths import ROOT
from tests.scripts.test_train import metrics
from tests.scripts.test_train import run_file as run_file


@pytest.mark.slow
def test_a_run_stopped_while_it_loads_starts_with_resume_auto(run_file: Path, tmp_path: Path, capfd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "evenkeel", "train", str(run_file), "trl.max_steps=2", "--resume", "auto"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 200
    while not (tmp_path / "run").exists():  # made behind all checks, before the model is loaded
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 143, said
    assert said.count("Stopped without a new checkpoint") == 1
    assert "Traceback" not in said
    assert not list((tmp_path / "run").glob("checkpoint-*"))
    assert main([str(run_file), "trl.max_steps=2", "--resume", "auto"]) == 0
    assert "run ended before its first complete checkpoint, so the run starts again" in capfd.readouterr().out
    assert max(line["step"] for line in metrics(tmp_path / "run-2")) == 2

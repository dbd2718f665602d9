"""Two ranks of a real run that is told to stop."""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.scripts.test_random_kills import GONE_WITHIN, Launch, launched
from tests.scripts.test_train import metrics, write_run

pytestmark = pytest.mark.slow


def run_file(folder: Path, model: Path, trl: dict[str, Any], **sections: Any) -> Path:
    """A run of two processes, 8 rows each, in ``<folder>/run``; written anew it is that run under other settings."""
    trl = {"per_device_train_batch_size": 8, **trl}
    return write_run(folder, model, num_processes=2, evaluation={"before": False}, trl=trl, **sections)


def steps(run: Path) -> list[int]:
    return [entry["step"] for entry in metrics(run) if "loss" in entry] if (run / "metrics.jsonl").exists() else []


def await_step(launch: Launch, run: Path, step: int) -> None:
    deadline = time.monotonic() + 300
    while max(steps(run), default=0) < step:
        assert launch.process.poll() is None, launch.said.read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ended(launch: Launch, status: int) -> str:
    """What was said until all processes were gone."""
    assert launch.process.wait(timeout=300) == status, launch.said.read_text()[-3000:]
    launch.await_end(GONE_WITHIN)
    said = launch.said.read_text()
    assert "Traceback" not in said, said[-5000:]
    return said


def test_the_launcher_told_to_stop_saves_on_both_ranks(tiny_model: Path, tmp_path: Path, monkeypatch):
    run, slowly = tmp_path / "run", tmp_path / "slowly"
    monkeypatch.setenv("WAIT_WHILE", str(slowly))
    monkeypatch.setenv("WAIT_SECONDS", "0.2")
    slowly.touch()
    sections: dict[str, Any] = {"rewards": [{"verifier": "tests.scripts.verifiers:unhurried"}]}
    with launched(run_file(tmp_path, tiny_model, {"max_steps": 500}, **sections), 2) as launch:
        await_step(launch, run, 3)
        launch.process.send_signal(signal.SIGTERM)
        said = ended(launch, 130)
    slowly.unlink()
    (stopped,) = map(int, re.findall(r"Stopped at step (\d+) with a checkpoint", said))
    record = json.loads((run / f"checkpoint-{stopped}" / "manifest.json").read_text())
    assert {"rng_state_0.pth", "rng_state_1.pth", "evenkeel.pt"} <= {*record["files"]}

    with launched(run_file(tmp_path, tiny_model, {"max_steps": stopped + 2}, **sections), 2) as launch:
        assert f"resumed from checkpoint-{stopped}" in ended(launch, 0)
    assert steps(run) == [*range(1, stopped + 3)]

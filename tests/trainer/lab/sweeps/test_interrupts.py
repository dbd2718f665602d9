"""Ctrl-C while a cell hangs."""

import os
import signal
import sys
from pathlib import Path

import pytest

from evenkeel.trainer.lab.sweeps import runner as runner_module
from evenkeel.trainer.lab.sweeps import starting
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.plans import plans_of
from evenkeel.trainer.lab.sweeps.queues import LocalQueue
from evenkeel.trainer.lab.sweeps.runner import SweepRunner
from evenkeel.trainer.lab.sweeps.starting import queued_cells
from tests.paths import ROOT

SWEEP = """
config: configs/quickstart.yaml
baseline: grpo
seeds: [0, 1]
variants: {{grpo: {{}}}}
output_dir: {folder}/sweep
retries: 0
"""
HANGS_WITH_SEED_1 = """
import json, pathlib, signal, sys, time
if "seed=1" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
(output_dir,) = (word.partition("=")[2] for word in sys.argv if word.startswith("output_dir="))
pathlib.Path(output_dir).mkdir(parents=True)
pathlib.Path(output_dir, "summary.json").write_text(json.dumps({"optimizer_steps": 1, "wall_seconds": 0.1}))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(runner_module, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(starting, "launcher_of", lambda sweep: [sys.executable, str(tmp_path / "script.py")])
    monkeypatch.chdir(ROOT)
    return tmp_path


def runner_of(folder: Path, said: list[str]) -> SweepRunner:
    (folder / "compare.yaml").write_text(SWEEP.format(folder=folder))
    (folder / "script.py").write_text(HANGS_WITH_SEED_1)
    sweep, tree = load_sweep(folder / "compare.yaml")
    entries = queued_cells(sweep, plans_of(sweep, cells_of(sweep), tree))
    return SweepRunner(sweep, entries, LocalQueue(folder / "submitit", [[], []]), said.append)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_what_the_first_one_waits_for(folder: Path):
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if line.startswith(("grpo-s0: finished", "Stopping")):
            os.kill(os.getpid(), signal.SIGINT)

    runner = runner_of(folder, said)
    runner.say = say
    assert not runner.run()
    assert len([line for line in said if line.startswith("Stopping grpo-s1")]) == 1

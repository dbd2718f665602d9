"""A queue that refuses: cells wait for others to end.

SLURM's commands are shell scripts here that refuse as the real ones do, and otherwise run what they are given.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from evenkeel.trainer.command.sweep import main
from evenkeel.trainer.lab.sweeps import queues, starting
from evenkeel.trainer.lab.sweeps import runner as runner_module
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.plans import plans_of
from evenkeel.trainer.lab.sweeps.queues import LocalQueue, SchedulerError, SlurmQueue
from evenkeel.trainer.lab.sweeps.runner import SweepRunner
from evenkeel.trainer.lab.sweeps.schema import SlurmExecution
from evenkeel.trainer.lab.sweeps.starting import queued_cells
from tests.paths import ROOT

LIMIT = "sbatch: error: QOSMaxSubmitJobPerUserLimit"
SWEEP = """
config: configs/quickstart.yaml
baseline: grpo
seeds: [0, 1]
variants: {{grpo: {{}}}}
output_dir: {folder}/sweep
retries: 1
executor: {{kind: slurm, time: 10}}
"""
FINISHES = """
import json, pathlib, sys
(output_dir,) = (word.partition("=")[2] for word in sys.argv if word.startswith("output_dir="))
pathlib.Path(output_dir).mkdir(parents=True)
pathlib.Path(output_dir, "summary.json").write_text(json.dumps({"optimizer_steps": 1, "wall_seconds": 0.1}))
"""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of SLURM's commands: ``sbatch`` refuses, ``squeue`` lists nothing, ``scancel`` fails."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, lines in {
        "sbatch": f"echo $* >> {tmp_path}/submitted; echo '{LIMIT}' >&2; exit 1",
        "srun": "exit 1",
        "squeue": "exit 0",
        "scancel": "echo 'scancel: error: slurm_kill_job: Unable to contact slurm controller' >&2; exit 1",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(runner_module, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(runner_module, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(queues, "_SECONDS_BETWEEN_SQUEUES", 0.05)
    monkeypatch.setattr(starting, "launcher_of", lambda sweep: [sys.executable, str(tmp_path / "script.py")])
    monkeypatch.chdir(ROOT)
    return folder


HANGS_WITH_SEED_1 = """
import signal, sys, time
if "seed=1" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
"""


def runner_of(folder: Path, said: list[str], script: str = FINISHES) -> SweepRunner:
    (folder / "compare.yaml").write_text(SWEEP.format(folder=folder))
    (folder / "script.py").write_text(script)
    sweep, tree = load_sweep(folder / "compare.yaml")
    assert isinstance(sweep.executor, SlurmExecution)
    queue = SlurmQueue(folder / "sweep" / "submitit", sweep.executor)
    entries = queued_cells(sweep, plans_of(sweep, cells_of(sweep), tree))
    return SweepRunner(sweep, entries, queue, said.append)


def test_a_queue_that_refuses_while_nothing_runs_ends_the_sweep(tmp_path: Path, commands):
    runner = runner_of(tmp_path, [])
    for _ in range(2):
        with pytest.raises(SchedulerError, match=LIMIT):
            runner.run()
    assert len((tmp_path / "submitted").read_text().splitlines()) == 2
    assert [entry.directory.state() for entry in runner.entries] == ["waiting", "waiting"]


class OneAtATime(LocalQueue):
    """Says that it has room for two and takes one, as SLURM under a limit on a user's jobs."""

    refusals = 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [[], []])

    def start(self, label, attempt):
        if len(self.free) < 2:
            self.refusals += 1
            raise SchedulerError(LIMIT)
        return super().start(label, attempt)


@pytest.mark.slow
def test_under_a_limit_cells_wait_for_each_other_and_all_finish(tmp_path: Path, commands):
    said: list[str] = []
    runner = runner_of(tmp_path, said)
    runner.queue = queue = OneAtATime(tmp_path / "submitit")
    runner.sweep = runner.sweep.model_copy(update={"retries": 0})
    assert runner.run()
    assert [entry.directory.state() for entry in runner.entries] == ["finished", "finished"]
    assert queue.refusals > 1  # more than a cell has tries
    assert [len(entry.directory.attempts()) for entry in runner.entries] == [1, 1]


def test_a_stop_that_fails_is_said_and_the_cells_are_awaited(tmp_path: Path, commands):
    names, over = tmp_path / "names", tmp_path / "over"
    taken = f"sed -n 's/^#SBATCH --job-name=//p' $1 >> {names}\necho Submitted batch job $(wc -l < {names})\n"
    (commands / "sbatch").write_text(f"#!/bin/sh\n{taken}")
    (commands / "squeue").write_text(f"#!/bin/sh\n[ -e {over} ] || cat {names}\n")
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if line == "grpo-s1: started":
            os.kill(os.getpid(), signal.SIGINT)
        if line.startswith("grpo-s1: could not be stopped"):
            over.touch()

    runner = runner_of(tmp_path, said)
    runner.say = say
    assert not runner.run()
    failed = [line for line in said if "could not be stopped" in line]
    assert len(failed) == 2
    assert "Unable to contact slurm controller)" in failed[0]


def test_an_attempt_that_an_earlier_sweep_started_holds_a_slot(tmp_path: Path):
    queue = LocalQueue(tmp_path, [["0", "1"], ["2", "3"]])
    entries = [{"label": "unrecorded"}, {"label": "of other slots", "gpus": ["0"]}, {"label": "b"}]
    for entry in entries:
        queue.adopt(entry)
    assert queue.free == []
    for entry in entries:
        queue.release(entry)
    assert sorted(queue.free) == [["0", "1"], ["2", "3"]]


@pytest.mark.slow
def test_a_second_ctrl_c_ends_what_the_first_one_waits_for(tmp_path: Path, commands):
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if line.startswith(("grpo-s0: finished", "Stopping")):
            os.kill(os.getpid(), signal.SIGINT)

    runner = runner_of(tmp_path, said, HANGS_WITH_SEED_1 + FINISHES)
    runner.queue, runner.say = LocalQueue(tmp_path / "submitit", [[], []]), say
    assert not runner.run()
    assert len([line for line in said if line.startswith("Stopping grpo-s1")]) == 1


ROWS = """
import os
from evenkeel.errors import Refusal
def rows() -> list[dict[str, str]]:
    if "EVENKEEL_CELL" in os.environ:
        raise Refusal("no rows for cells")
    return [{"prompt": f"{number} + 1 = ?", "reference": str(number + 1)} for number in range(64)]
"""


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_cell_that_refuses_itself_is_not_run_again_whatever_launched_it(tmp_path: Path, monkeypatch, processes: int):
    """Its status 2 also comes through the launcher, and its log ends with why, without the launcher's traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "refusing_rows.py").write_text(ROWS)
    (tmp_path / "base.yaml").write_text(
        f"extends: {ROOT / 'configs/quickstart.yaml'}\nnum_processes: {processes}\n"
        "trl: {per_device_train_batch_size: 64}\nrewards: [{verifier: exact_match}]\n"
        "data: {train: {generator: {name: refusing_rows:rows}}, test: {generator: {name: refusing_rows:rows}}}\n"
    )
    text = SWEEP.replace("configs/quickstart.yaml", "base.yaml").format(folder=tmp_path).replace("[0, 1]", "[0]")
    text = text.replace("{kind: slurm, time: 10}", "{kind: local}")
    (tmp_path / "compare.yaml").write_text(f"{text}launch: {{num_processes: {processes}, cpu: true}}\n")
    assert main(["run", str(tmp_path / "compare.yaml")]) == 1
    cell = CellDirectory(tmp_path / "sweep" / "grpo-s0")
    assert [attempt["exit_status"] for attempt in cell.attempts()] == [2]
    assert "no rows for cells" in cell.log_end(5)
    assert "Traceback" not in cell.log.read_text()

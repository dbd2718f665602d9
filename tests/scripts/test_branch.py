"""A run that begins in another run's checkpoint: the rest of its parent, but for what it changes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from evenkeel.errors import Refusal
from evenkeel.trainer.command.branch import main as branch
from evenkeel.trainer.command.sweep import main as sweep
from evenkeel.trainer.command.train import main as train
from evenkeel.trainer.run.branch import branch_of
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.record.manifest import data_fingerprint
from evenkeel.trainer.run.record.rollouts import RecordedRollouts
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.wandb_file import row_of
from tests.paths import ROOT
from tests.scripts.test_resume import assert_same_state
from tests.scripts.test_train import metrics, untimed, wandb_parts, write_run

FADING = "tests.scripts.strategies:FadingGRPO"


@pytest.fixture(scope="module")
def parent(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of four optimizer steps with checkpoints after two and four."""
    folder = tmp_path_factory.mktemp("branches")
    with patch.dict(os.environ):  # a run leaves trackers' settings there
        file = write_run(
            folder,
            tiny_model,
            "parent",
            common_random_numbers=True,
            algorithm={"advantage": FADING},
            trl={"lr_scheduler_type": "cosine", "warmup_steps": 2},
            evaluation={"before": False},
            logging={"report_to": "none"},
        )
        assert train([str(file)]) == 0
    return folder / "parent"


def branched(parent: Path, to: Path, *changes: str, step: int = 2) -> Path:
    begun = f"branch_of={parent / f'checkpoint-{step}'}"
    assert train([str(parent / "config.yaml"), begun, f"output_dir={to}", "name=branch", *changes]) == 0
    return to


def settings_of(run: Path, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first group of the optimizer, and the schedule, as a checkpoint holds them."""
    paths = (run / f"checkpoint-{step}" / name for name in ("optimizer.pt", "scheduler.pt"))
    optimizer, scheduler = (torch.load(path, weights_only=True) for path in paths)
    return optimizer["param_groups"][0], scheduler


def test_a_branch_that_changes_nothing_is_the_rest_of_its_parent(parent: Path, tmp_path: Path):
    branch = branched(parent, tmp_path / "branch")
    assert_same_state(branch / "checkpoint-4", parent / "checkpoint-4")
    assert untimed(branch) == [line for line in untimed(parent) if line["step"] > 2]
    assert (branch / "checkpoint-2" / "model.safetensors").samefile(parent / "checkpoint-2" / "model.safetensors")
    assert RunRecord(branch).seconds is not None
    assert RunRecord(branch).manifest["branch"] is not None


@pytest.mark.slow
def test_a_branch_trains_with_its_own_settings(parent: Path, tmp_path: Path):
    """The learning rate is not the one that the parent's checkpoint holds; a new estimator begins without a state."""
    changes = "trl.learning_rate=3e-2", "trl.weight_decay=0.5", "algorithm.advantage=grpo"
    branch = branched(parent, tmp_path / "branch", *changes)
    before, scheduler = settings_of(parent, 2)
    group, changed = settings_of(branch, 4)
    assert (group["initial_lr"], group["weight_decay"]) == (3e-2, 0.5)
    assert (before["initial_lr"], before["weight_decay"]) == (1e-2, 0.0)
    assert changed["last_epoch"] == 4
    rates = [line["learning_rate"] for line in metrics(branch) if "learning_rate" in line]
    theirs = [line["learning_rate"] for line in metrics(parent) if line["step"] > 2 and "learning_rate" in line]
    assert rates == pytest.approx([3 * rate for rate in theirs])
    assert scheduler["last_epoch"] == 2
    old, new = ((run / "checkpoint-4" / "model.safetensors").read_bytes() for run in (parent, branch))
    assert old != new


@pytest.mark.slow
def test_a_branch_of_two_passes_goes_on_with_the_same_prompts(parent: Path, tmp_path: Path):
    """Lopti takes two optimizer steps for a rollout batch: steps are numbered anew, rollout batches are not."""
    changes = "algorithm.update_schedule=lopti", "trl.max_steps=8", "trl.save_steps=2", "trl.warmup_steps=4"
    branch = branched(parent, tmp_path / "branch", *changes)
    assert [line["step"] for line in metrics(branch) if "reward" in line] == [5, 7]
    rows = ([row for table in RecordedRollouts(run).batches() for row in table.to_pylist()] for run in (branch, parent))
    ours, theirs = ([row for row in each if row["batch"] > 1] for each in rows)
    assert len(ours) == 32
    assert [row["prompt"] for row in ours] == [row["prompt"] for row in theirs]
    written = [[row["completion_ids"] for row in rows if row["batch"] == 2] for rows in (ours, theirs)]
    assert written[0] == written[1]  # the same policy draws with the same noise
    _, scheduler = settings_of(branch, 8)
    assert scheduler["last_epoch"] == 8


@pytest.mark.slow
def test_a_branch_goes_on_after_a_stop_without_its_parent(parent: Path, tmp_path: Path):
    whole = branched(parent, tmp_path / "whole", "trl.learning_rate=3e-2", "trl.save_steps=1")
    cut = branched(parent, tmp_path / "cut", "trl.learning_rate=3e-2", "trl.save_steps=1", "logging.report_to=[wandb]")
    for path in (cut / "checkpoint-4", cut / "summary.json"):
        path.rename(tmp_path / path.name)
    aside = parent.rename(tmp_path / "away")
    config = str(cut / "config.yaml")
    assert train([config, "--resume", str(cut)]) == 0
    aside.rename(parent)
    assert_same_state(cut / "checkpoint-4", whole / "checkpoint-4")
    sent = [record for part in wandb_parts(cut) for record in part]
    assert {record.run.run_id for record in sent} == {"", (cut / "wandb_run_id.txt").read_text().strip()}
    assert [row["train/global_step"] for row in map(row_of, sent) if "train/reward" in row] == [3, 4]
    begun = {item.value_json for record in sent for item in record.config.update if item.key == "branch_of"}
    assert [*begun] == [f'"{parent}/checkpoint-2"']


KILLED_BEFORE_ITS_FIRST_RECORD = """
import os, sys
from evenkeel.trainer.command.train import main
from evenkeel.trainer.run.record.run_time import RunTime
RunTime.__enter__ = lambda clock: os.kill(os.getpid(), 9)
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_branch_killed_before_its_first_record_goes_on_and_is_finished(parent: Path, tmp_path: Path):
    run, begun = tmp_path / "branch", f"branch_of={parent / 'checkpoint-2'}"
    arguments = [str(parent / "config.yaml"), begun, f"output_dir={run}", "name=branch"]
    command = [sys.executable, "-c", KILLED_BEFORE_ITS_FIRST_RECORD, *arguments]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == -9
    assert (run / "checkpoint-2" / "manifest.json").is_file()
    assert train([*arguments, "--resume", str(run)]) == 0
    assert RunRecord(run).summary["wall_seconds"] > 0


REFUSED = {
    "seed=5": "seed: 42 → 5",
    "data.train.generator.seed=3": "data.train.generator.seed: 0 → 3",
    "trl.num_generations=8": "num_generations of a rollout: 4 → 8",
    "trl.optim=sgd": "trl.optim: 'adamw_torch_fused' → 'sgd'",
    "trl.max_steps=2": "trl.max_steps = 2, and the branch begins at step 2",
}


def test_what_a_branch_cannot_change_is_refused(parent: Path):
    for change, said in REFUSED.items():
        experiment = Experiment.of_file(parent / "config.yaml", [f"branch_of={parent / 'checkpoint-2'}", change])
        with pytest.raises(Refusal) as refused:
            branch_of(experiment, data_fingerprint(experiment.rows["train"]))
        assert said in str(refused.value)


VARIANTS = """
baseline: parent
variants:
  parent: {}
  larger_rate: {trl.learning_rate: 3e-2}
  two_passes: {algorithm.update_schedule: lopti}
"""


@pytest.mark.slow
def test_variants_of_two_parents_are_compared(parent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    evaluated = ["evaluation.samples=2"]
    parents = []
    for seed in (1, 2):
        to = tmp_path / f"parent-{seed}"
        assert train([str(parent / "config.yaml"), f"seed={seed}", f"output_dir={to}", *evaluated]) == 0
        parents.append(f"{to}@2")
    file = tmp_path / "variants.yaml"
    file.write_text(VARIANTS + f"output_dir: {tmp_path / 'arms'}\n")
    capsys.readouterr()
    assert branch([*parents, str(file)]) == 0
    text = (tmp_path / "arms" / "report.md").read_text()
    assert "given these parents" in text
    for seed in (1, 2):
        rest = tmp_path / "arms" / f"parent-s{seed}" / "run"
        assert_same_state(rest / "checkpoint-4", tmp_path / f"parent-{seed}" / "checkpoint-4")
        assert RunRecord(tmp_path / "arms" / f"two_passes-s{seed}" / "run").summary["optimizer_steps"] == 8
    assert branch([*parents, str(file)]) == 0  # nothing is left to run
    file.write_text(VARIANTS + f"from: {parents}\noutput_dir: {tmp_path / 'arms'}\n")
    assert sweep(["report", str(file)]) == 0

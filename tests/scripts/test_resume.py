"""A run that was interrupted and goes on is the run that was not: its metrics, its weights, on one process and two."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import torch

from evenkeel.trainer.command.train import main
from evenkeel.trainer.run.record.rollouts import RecordedRollouts
from evenkeel.trainer.run.record.wandb_file import row_of
from tests.scripts.test_train import CLOCK, launch, untimed, wandb_parts, wandb_table, write_run

ON_TWO = ["-m", "accelerate.commands.launch", "--config_file", "configs/accelerate/cpu_two_processes.yaml"]


def run_file(folder: Path, model: Path, name: str, **trl: Any) -> Path:
    """A run of a few seconds in a directory of its own, called ``name``."""
    stopping = {"advantage": "tests.scripts.strategies:stopping"}
    return write_run(folder, model, name, algorithm=stopping, trl=trl, logging={"report_to": ["wandb"]})


def at_wandb(run: Path) -> list[tuple[int, str, Any]]:
    """Step, name and value of all that W&B's files hold, of all parts of a run, but for times and the table's files."""
    rows = [row for part in wandb_parts(run) for row in map(row_of, part) if row]
    found = [(row["train/global_step"], name, value) for row in rows for name, value in row.items()]
    left_out = f"^_|^rollouts/|^prof|epoch|global_|{CLOCK.pattern}"
    return sorted(each for each in found if not re.search(left_out, each[1]))


def assert_same_state(one: Path, two: Path, weights: str = "model.safetensors") -> None:
    """Weights, optimizer, learning rate and random states of two checkpoints are equal bit for bit."""
    assert (one / weights).read_bytes() == (two / weights).read_bytes()
    states = sorted(path.name for path in one.glob("*.pt*") if path.name != "training_args.bin")
    assert {"optimizer.pt", "scheduler.pt"} <= {*states}
    assert any(name.startswith("rng_state") for name in states)
    for name in states:
        old, new = (torch.load(folder / name, weights_only=False) for folder in (one, two))
        for state in (old, new):
            state.pop("logged", None)  # times among it; the metrics made of it are compared
            state.pop("python", None)  # libraries draw from it too, each process as often as it likes
        assert repr(old) == repr(new)
        old, new = ([*map(torch.Tensor.tolist, tensors(state))] for state in (old, new))
        assert old == new


def assert_same_rollouts(one: Path, two: Path, batches: int, ranks: int = 1) -> None:
    """Every rollout batch is there once, with the same rows."""
    names = {f"batch-{n:06d}-rank-{rank}.parquet" for n in range(batches) for rank in range(ranks)}
    for run in (one, two):
        assert {path.name for path in (run / "rollouts").iterdir()} == names
    for name in names:
        old, new = (parquet.read_table(run / "rollouts" / name) for run in (one, two))
        assert old.equals(new)
        assert len(old) > 0


def tensors(state: Any) -> list[torch.Tensor]:
    """All tensors in nested containers."""
    if isinstance(state, torch.Tensor):
        return [state]
    inside = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return [tensor for each in inside for tensor in tensors(each)]


@pytest.mark.slow
@pytest.mark.parametrize(("by", "at", "status"), [("SIGTERM", "4", 130), ("SIGKILL", "6", -signal.SIGKILL)])
def test_metrics_of_an_interrupted_run_equal_those_of_one_without(tiny_model: Path, tmp_path: Path, by, at, status):
    """Every third step is logged and every fourth saved: it goes on between two lines, or trains steps again."""
    timing = {"max_steps": 8, "logging_steps": 3, "save_steps": 4, "save_total_limit": 1}
    overrides = ["algorithm.sequences_per_update=16", "algorithm.update_schedule=lopti", "evaluation.every_steps=2"]
    whole, cut = (run_file(tmp_path, tiny_model, name, **timing) for name in ("whole", "cut"))
    interruption = {"STOPPING_ESTIMATOR_AT": at, "STOPPING_ESTIMATOR_BY": by}
    stopped = launch("-m", "evenkeel", "train", str(cut), *overrides, "--resume", "auto", **interruption)
    assert stopped.returncode == status, stopped.stderr[-3000:]
    assert main([str(whole), *overrides]) == 0
    assert main([str(cut), *overrides, "--resume", "auto"]) == 0
    assert untimed(tmp_path / "cut") == untimed(tmp_path / "whole")
    assert at_wandb(tmp_path / "cut") == at_wandb(tmp_path / "whole")
    rows, kept = (wandb_table(tmp_path / name) for name in ("whole", "cut"))
    assert kept == [row for row in rows if row in kept]  # W&B loses the end of a killed run's file
    assert (len(wandb_parts(tmp_path / "cut")), len(rows), len(kept)) == (2, 32, 16 if by == "SIGKILL" else 32)
    assert_same_state(tmp_path / "cut" / "checkpoint-8", tmp_path / "whole" / "checkpoint-8")
    assert_same_rollouts(tmp_path / "cut", tmp_path / "whole", batches=4)
    assert [path.name for path in (tmp_path / "cut").glob("*checkpoint-*")] == ["checkpoint-8"]
    assert json.loads((tmp_path / "cut" / "summary.json").read_text())["optimizer_steps"] == 8


@pytest.mark.slow
def test_two_processes_go_on_bit_for_bit(tiny_model: Path, tmp_path: Path):
    overrides = ["num_processes=2", "trl.per_device_train_batch_size=8", "evaluation.before=false"]
    for name, parts in (("whole", [4]), ("cut", [2, 4])):
        file = run_file(tmp_path, tiny_model, name)
        for steps in parts:
            train = ["-m", "evenkeel", "train", str(file), *overrides, f"trl.max_steps={steps}", "--resume", "auto"]
            result = launch(*ON_TWO, *train, ACCELERATE_USE_CPU="true")
            assert result.returncode == 0, result.stderr[-3000:]
    assert "resumed from checkpoint-2" in result.stdout
    assert_same_rollouts(tmp_path / "cut", tmp_path / "whole", batches=4, ranks=2)
    assert [len(wandb_parts(tmp_path / name)) for name in ("whole", "cut")] == [1, 2]  # rank 0 alone
    together = [row for table in RecordedRollouts(tmp_path / "cut").batches() for row in table.to_pylist()]
    assert [row["row"] for row in together] == [*range(16)] * 4
    for start in range(0, 64, 4):
        assert len({(row["prompt"], row["group"], row["step"]) for row in together[start : start + 4]}) == 1
    assert_same_state(tmp_path / "cut" / "checkpoint-4", tmp_path / "whole" / "checkpoint-4")
    record = json.loads((tmp_path / "cut" / "checkpoint-4" / "manifest.json").read_text())
    assert {"rng_state_0.pth", "rng_state_1.pth", "evenkeel.pt"} <= {*record["files"]}
    assert record["world_size"] == 2

    (tmp_path / "cut" / "checkpoint-4" / "rng_state_1.pth").unlink()  # as when rank 1 is killed while it saves
    again = launch(*ON_TWO, *train, ACCELERATE_USE_CPU="true")
    assert again.returncode == 0, again.stderr[-3000:]
    assert again.stdout.count("checkpoint-4 is broken: rng_state_1.pth is missing") == 1
    assert_same_state(tmp_path / "cut" / "checkpoint-4", tmp_path / "whole" / "checkpoint-4")

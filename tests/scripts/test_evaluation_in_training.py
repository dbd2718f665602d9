"""Held-out sets while a run goes on: what is written and logged on the schedule, and which checkpoint is kept."""

import json
from pathlib import Path

import pytest
from pyarrow import parquet
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from evenkeel.trainer.command.evaluate import main as evaluate
from evenkeel.trainer.command.train import main
from tests.scripts.test_train import metrics, write_run

SETS = {
    "small": {"generator": {"name": "countdown", "part": "test", "train": 32, "test": 5, "seed": 0}},
    "large": {"generator": {"name": "countdown", "part": "test", "train": 32, "test": 11, "seed": 1}},
}


@pytest.fixture
def run_file(tiny_model: Path, tmp_path: Path) -> Path:
    """A run that evaluates two sets, four samples and the greedy completion, after each rollout batch."""
    evaluation = {"every_steps": 1, "batch_size": 8, "samples": 4, "greedy": True, "keep_best": "eval/large/avg@4"}
    trl = {"max_steps": 4, "save_total_limit": 2, "learning_rate": 3e-2}
    return write_run(tmp_path, tiny_model, data={"test": SETS}, trl=trl, evaluation=evaluation)


def test_sets_are_written_logged_and_the_best_checkpoint_is_kept(run_file: Path, tmp_path: Path):
    assert main([str(run_file), "logging.report_to=[tensorboard]"]) == 0
    run = tmp_path / "run"
    shown = EventAccumulator(str(run / "tensorboard")).Reload().Tags()["scalars"]
    assert {"eval/large/avg@4", "eval/small/greedy"} <= {*shown}
    evaluated = {entry["step"]: entry for entry in metrics(run) if "eval/large/avg@4" in entry}
    assert [*evaluated] == [*range(5)]
    assert {"eval/small/greedy", "eval/small/pass@2", "eval_verifier/accuracy"} <= evaluated[4].keys()
    assert "eval/large/maj@4" not in evaluated[4]  # this verifier reads no answers

    for name, items in (("small", 5), ("large", 11)):
        files = sorted((run / "evaluations" / name).glob("*.parquet"))
        assert [path.stem for path in files] == [f"step-{step:06d}" for step in range(5)]
        rows = parquet.read_table(files[-1]).to_pylist()
        assert len(rows) == items * 5
        sampled = [row["correct"] for row in rows if not row["greedy"]]
        assert evaluated[4][f"eval/{name}/avg@4"] == pytest.approx(sum(sampled) / len(sampled))
        summary = json.loads(files[-1].with_suffix(".json").read_text())
        assert summary["avg@4"]["low"] <= summary["avg@4"]["value"] <= summary["avg@4"]["high"]

    accuracy = [evaluated[step]["eval/large/avg@4"] for step in range(1, 5)]
    best = accuracy.index(max(accuracy)) + 1
    summary = json.loads((run / "summary.json").read_text())
    assert summary["best_metric"] == pytest.approx(max(accuracy))
    assert Path(summary["best_checkpoint"]).name == f"checkpoint-{best}"
    kept = {path.name for path in run.glob("checkpoint-*")}
    assert kept >= {f"checkpoint-{best}", "checkpoint-4"}
    assert len(kept) == 2
    assert summary["held_out_rows"] == 16

    again = tmp_path / "again"  # by the command, of each checkpoint: what the run itself found there, and the means
    command = [str(run), str(run / "config.yaml"), "--output", str(again), "--last"]
    with pytest.raises(SystemExit):
        evaluate([*command, "0"])
    assert evaluate([*command, "3"]) == 2
    assert evaluate([*command, "2"]) == 0
    steps = [int(name.removeprefix("checkpoint-")) for name in kept]
    means = json.loads((again / "means.json").read_text())
    for name in SETS:
        for step in steps:
            found, before = (folder / name / f"step-{step:06d}.parquet" for folder in (again, run / "evaluations"))
            assert parquet.read_table(found).to_pylist() == parquet.read_table(before).to_pylist()
        two = [evaluated[step][f"eval/{name}/avg@4"] for step in steps]
        assert means[name]["avg@4"] == pytest.approx(sum(two) / 2)
    assert means["all sets"]["greedy"] == pytest.approx((means["small"]["greedy"] + means["large"]["greedy"]) / 2)

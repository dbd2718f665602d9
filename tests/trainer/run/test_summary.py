"""What a run writes of its metrics: lines that a resume keeps, and a summary."""

import json
from pathlib import Path
from types import SimpleNamespace

from evenkeel.trainer.run.callbacks.records import MetricsFile
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.summary import draw_reward_curve, write_summary


def test_summary_and_curve_come_from_the_runs_own_files(tmp_path: Path):
    lines = [{"step": 0, "eval_accuracy": 0.25}, {"step": 1, "reward": 0.5}, {"step": 2, "reward": None}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert RunRecord(tmp_path).metric_at(0, "eval_accuracy") == 0.25
    assert RunRecord(tmp_path).metric_at(2, "eval_accuracy") is None
    draw_reward_curve(tmp_path, "accuracy")
    assert (tmp_path / "reward_curve.png").stat().st_size > 5_000
    write_summary(tmp_path, {"name": "run", "accuracy_after": 0.123456, "token_weight": None})
    assert "| accuracy after | 0.1235 |" in (tmp_path / "summary.md").read_text()
    assert json.loads((tmp_path / "summary.json").read_text())["accuracy_after"] == 0.123456


def test_a_resume_keeps_the_lines_up_to_its_checkpoint_but_the_end_of_the_run_before(tmp_path: Path):
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    kept = [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.2}]
    trained_again = [{"step": 2, "train_runtime": 1.0}, {"step": 3, "loss": 0.3}]
    metrics.path.write_text("".join(f"{json.dumps(line)}\n" for line in [*kept, *trained_again]))
    metrics.on_train_begin(None, SimpleNamespace(is_world_process_zero=True, global_step=2), None)
    assert [json.loads(line) for line in metrics.path.read_text().splitlines()] == kept

"""Lines of metrics: a resume keeps those of its checkpoint."""

import json
from pathlib import Path
from types import SimpleNamespace

from evenkeel.trainer.run.callbacks.records import MetricsFile


def test_a_resume_keeps_the_lines_up_to_its_checkpoint_but_the_end_of_the_run_before(tmp_path: Path):
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    kept = [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.2}]
    trained_again = [{"step": 2, "train_runtime": 1.0}, {"step": 3, "loss": 0.3}]
    metrics.path.write_text("".join(f"{json.dumps(line)}\n" for line in [*kept, *trained_again]))
    metrics.on_train_begin(None, SimpleNamespace(is_world_process_zero=True, global_step=2), None)
    assert [json.loads(line) for line in metrics.path.read_text().splitlines()] == kept

"""Lines of metrics: on a full disk they wait, none is half written, and a resume keeps those of its checkpoint."""

import json
import resource
from pathlib import Path
from types import SimpleNamespace

from evenkeel.trainer.run.callbacks.records import MetricsFile


def test_lines_wait_while_the_disk_is_full(tmp_path: Path, capsys):
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    for step in range(1, 6):
        state = SimpleNamespace(is_world_process_zero=True, global_step=step)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most if step in (1, 4, 5) else 60, most))
        try:
            metrics.on_log(None, state, None, {"loss": 0.1234567890123})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        written = [json.loads(line)["step"] for line in metrics.path.read_text().splitlines()]
        assert written == ([1] if step < 4 else [*range(1, step + 1)])
    assert capsys.readouterr().out.count("could not be written") == 1


def test_a_resume_keeps_the_lines_up_to_its_checkpoint_but_the_end_of_the_run_before(tmp_path: Path):
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    kept = [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.2}]
    trained_again = [{"step": 2, "train_runtime": 1.0}, {"step": 3, "loss": 0.3}]
    metrics.path.write_text("".join(f"{json.dumps(line)}\n" for line in [*kept, *trained_again]))
    metrics.on_train_begin(None, SimpleNamespace(is_world_process_zero=True, global_step=2), None)
    assert [json.loads(line) for line in metrics.path.read_text().splitlines()] == kept

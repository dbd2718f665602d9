"""Lines of metrics for which there is no room wait in memory, and none is half written."""

import json
import resource
from pathlib import Path
from types import SimpleNamespace

from evenkeel.trainer.run.callbacks import MetricsFile


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

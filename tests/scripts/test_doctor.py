"""evenkeel doctor on what one run leaves: its metrics and its checkpoint say the same as it did."""

import json
from pathlib import Path

import pytest

from evenkeel.trainer.command.doctor import main
from evenkeel.trainer.command.train import main as train
from tests.scripts.test_train import run_file as run_file


def test_a_run_says_what_the_doctor_finds_in_every_log_that_it_leaves(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 24 words one ends an answer: (23/24)^8 = 71 % of the random policy's are cut off after eight."""
    assert train([str(run_file), "trl.max_steps=6", "logging.report_to=none"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "were truncated" in line]
    assert [line.split(": ")[:2] for line in said] == [["step 5", "warning"]]
    run, findings = tmp_path / "run", []
    for log in (run, run / "checkpoint-6"):
        assert main([str(log), "--json"]) == 1
        findings.append(json.loads(capsys.readouterr().out)["findings"])
    assert findings[0] == findings[1]
    assert [(each["rule"], each["first_step"]) for each in findings[0]] == [("truncated", 5)]

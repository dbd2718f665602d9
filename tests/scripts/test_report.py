"""evenkeel report in this process, for another would import all that this one has; as a program among the slow."""

from pathlib import Path

from evenkeel.trainer.command.report import main
from tests.trainer.lab.reports.recorded_sweep import record_sweep


def test_a_sweep_is_reported_in_two_files_and_on_the_terminal(tmp_path: Path, capsys):
    sweep = record_sweep(tmp_path / "sweep", effects={"ar": 1.5}, seeds=(0, 1, 2, 3))
    assert main([str(sweep), "--output", str(tmp_path / "pages/seven.html")]) == 0
    assert "ar: better (4 seeds)" in capsys.readouterr().out
    assert (tmp_path / "pages/seven.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "pages/seven.md").read_text().startswith("# three")

"""scripts/report.py as its users run it."""

import subprocess
import sys
from pathlib import Path

from scripts.report import main
from tests.paths import ROOT
from tests.trainer.comparison.reports.recorded_sweep import record_sweep


def test_a_sweep_is_reported_in_two_files_and_on_the_terminal(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", effects={"ar": 1.5}, seeds=(0, 1, 2, 3))
    command = [sys.executable, "scripts/report.py", str(sweep), "--output", str(tmp_path / "pages/seven.html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert "ar: better (4 seeds)" in done.stdout
    assert (tmp_path / "pages/seven.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "pages/seven.md").read_text().startswith("# three")


def test_a_wrong_directory_is_refused_in_words(tmp_path: Path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "there is nothing to report on" in capsys.readouterr().err

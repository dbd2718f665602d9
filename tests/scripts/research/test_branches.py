"""The table of branches against runs from scratch, of runs whose accuracies are written here."""

import json
from pathlib import Path

import pytest

from evenkeel.trainer.lab.reports.run_files import RecordedRuns, read_runs
from scripts.research.branches import BASELINE, differences, table


def sweep(folder: Path, accuracies: dict[str, list[float]]) -> RecordedRuns:
    """A finished sweep, variant → final accuracy of each seed."""
    cells = []
    for variant, finals in accuracies.items():
        for seed, final in enumerate(finals):
            run = folder / f"{variant}-s{seed}" / "run"
            run.mkdir(parents=True)
            (run / "summary.json").write_text(json.dumps({"name": variant}))
            (run / "metrics.jsonl").write_text(json.dumps({"step": 4, "eval/test/avg@8": final}) + "\n")
            cell = {"variant": variant, "baseline": BASELINE, "seed": seed, "budget": {"steps_per_rollout": 1}}
            cells.append({"name": f"{variant}-s{seed}", **cell})
    (folder / "sweep.json").write_text(json.dumps({"name": folder.name, "baseline": BASELINE, "cells": cells}))
    return read_runs(folder)


def test_the_ratio_is_of_the_variances_of_paired_differences(tmp_path: Path):
    """Differences .0, .2, .4 (variance .04) and .1, .2, .3 (.01); for a seed 10 and 4 rollout batches."""
    runs = {
        "scratch": sweep(tmp_path / "scratch", {BASELINE: [0.1, 0.2, 0.3], "ar": [0.1, 0.4, 0.7]}),
        "branches": sweep(tmp_path / "branches", {BASELINE: [0.1, 0.2, 0.3], "ar": [0.2, 0.4, 0.6]}),
    }
    assert differences(runs["branches"], "ar") == pytest.approx([0.1, 0.2, 0.3])
    row = table(runs, {"scratch": 10, "branches": 4})[2]
    assert "| +0.200 [-0.297, +0.697], not seen, about" in row
    assert "| +0.200 [-0.048, +0.448], not seen, about" in row
    assert row.endswith("| 0.25 | 0.10 |")

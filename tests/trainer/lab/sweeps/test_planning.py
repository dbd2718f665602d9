"""What a few finished cells say of a sweep before it starts, and what is said where they say too little."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer.command import sweep as script
from evenkeel.trainer.lab.statistics import detectable_difference, verdict_power
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.pilots import Pilot, read_pilot
from evenkeel.trainer.lab.sweeps.planning import detectable_range, plan_table
from tests.trainer.lab.reports.recorded_sweep import record_run
from tests.trainer.lab.sweeps.test_sweep_file import sweep_file


def record_cells(folder: Path, names: Sequence[str], items: int = 24, **more: Any) -> Path:
    """Cells as `cell` leaves them; each run was evaluated after 0, 10 and 20 rollout batches, in a second each."""
    folder.mkdir()
    cells = []
    for number, name in enumerate(names):
        variant, _, seed = name.rpartition("-s")
        cells.append({"name": name, "variant": variant, "baseline": "grpo", "seed": int(seed)})
        settings = {"algorithm.token_weight": "adv_reweight"} if variant == "ar" else {}
        random_seed = [int(seed), number]
        record_run(folder / name / "run", variant, int(seed), settings, random_seed=random_seed, items=items, **more)
    (folder / "sweep.json").write_text(json.dumps({"name": "pilot", "seeds": [0, 1, 2], "cells": cells}))
    return folder


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Pilot:
    folder = tmp_path_factory.mktemp("pilots")
    return read_pilot(record_cells(folder / "sweep", ["grpo-s0", "grpo-s1", "ar-s0"]), "Run more.")


def test_the_plan_is_the_power_of_the_verdict_at_the_pilots_variances(pilot: Pilot, tmp_path: Path):
    sweep, _ = load_sweep(sweep_file(tmp_path, seeds=[0, 1, 2, 3, 4]))
    rows = [[cell.text for cell in row] for row in plan_table(sweep, pilot, 256, 0.1).rows]
    assert [row[0] for row in rows] == ["3", "5", "8", "12", "20"]
    detectable = detectable_difference(pilot.components, 5, 256)
    assert rows[1][1:] == [f"{detectable:.3f}", f"{verdict_power(0.1, pilot.components, 5, 256):.0%}"]
    low, high = detectable_range(pilot, 5, 256)
    assert low < detectable < high


def test_variants_with_three_seeds_in_common_are_paired(tmp_path: Path):
    names = [f"{variant}-s{seed}" for variant in ("grpo", "ar") for seed in range(3)]
    found = read_pilot(record_cells(tmp_path / "sweep", names), "")
    assert found.paired
    assert found.components.freedom == 2


def test_the_command_prints_the_plan(tmp_path: Path, capsys):
    file = sweep_file(tmp_path, seeds=[0, 1, 2, 3, 4])
    folder = record_cells(tmp_path / "earlier", ["grpo-s0", "grpo-s1"])
    options = ["--pilot", str(folder), "--items", "100", "--difference", "0.3"]
    assert script.main(["plan", str(file), *options]) == 0
    assert "With 5 seeds and 100 items it detects a true difference of" in capsys.readouterr().out

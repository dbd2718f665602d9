"""What a few finished cells say of a sweep before it starts, and what is said where they say too little."""

from pathlib import Path

import numpy as np
import pytest

from evenkeel.trainer.command import sweep as script
from evenkeel.trainer.lab.reports.outcomes import OUTCOMES
from evenkeel.trainer.lab.reports.run_files import read_runs
from evenkeel.trainer.lab.statistics.planning import detectable_difference, verdict_power
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.pilots import Pilot, read_pilot
from evenkeel.trainer.lab.sweeps.planning import detectable_range, plan_table
from tests.trainer.lab.reports.recorded_sweep import record_sweep
from tests.trainer.lab.sweeps.test_sweep_file import sweep_file

LOPTI = [f"lopti-s{seed}" for seed in range(3)]


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Pilot:
    folder = tmp_path_factory.mktemp("pilots") / "sweep"
    return read_pilot(record_sweep(folder, seeds=(0, 1), items=24, unfinished=[*LOPTI, "ar-s1"]), "Run more.")


def test_the_plan_is_the_power_of_the_verdict_at_the_pilots_variances(pilot: Pilot, tmp_path: Path):
    sweep, _ = load_sweep(sweep_file(tmp_path, seeds=[0, 1, 2, 3, 4]))
    rows = [[cell.text for cell in row] for row in plan_table(sweep, pilot, 256, 0.1).rows]
    assert [row[0] for row in rows] == ["3", "5", "8", "12", "20"]
    detectable = detectable_difference(pilot.components, 5, 256)
    assert rows[1][1:] == [f"{detectable:.3f}", f"{verdict_power(0.1, pilot.components, 5, 256):.0%}"]
    low, high = detectable_range(pilot, 5, 256)
    assert low < detectable < high


def test_the_command_prints_the_plan(tmp_path: Path, capsys):
    file = sweep_file(tmp_path, seeds=[0, 1, 2, 3, 4])
    folder = record_sweep(tmp_path / "earlier", seeds=(0, 1), items=24)
    options = ["--pilot", str(folder), "--items", "100", "--difference", "0.3"]
    assert script.main(["plan", str(file), *options]) == 0
    assert "With 5 seeds and 100 items it detects a true difference of" in capsys.readouterr().out
    for wrong, message in ((["jiter"], "Did you mean jitter?"), (["jitter", "--items", "9"], "Leave out --items.")):
        assert script.main(["plan", str(file), "--pilot", str(folder), "--outcome", *wrong]) == 2
        assert message in capsys.readouterr().err


def test_an_outcome_of_one_number_a_run_is_planned_by_the_spread_of_its_differences(tmp_path: Path):
    folder = record_sweep(tmp_path / "sweep", seeds=(0, 1, 2), items=24, unfinished=LOPTI)
    pilot = read_pilot(folder, "", OUTCOMES["jitter"])
    runs = read_runs(folder).by_variant
    ours, theirs = (OUTCOMES["jitter"].values([*runs[name].values()], "test") for name in ("ar", "grpo"))
    assert pilot.components.seed_variance(1) == pytest.approx(np.var(ours - theirs, ddof=1))
    assert (pilot.components.items, pilot.num_items) == (0, 1)
    assert (pilot.paired, pilot.components.freedom) == (True, 2)  # of three seeds in common

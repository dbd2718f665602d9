"""What a few finished cells say of a sweep before it starts, and what is said where they say too little."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evenkeel.trainer.command import sweep as script
from evenkeel.trainer.lab.statistics import detectable_difference, verdict_power
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.pilots import Pilot, read_pilot
from evenkeel.trainer.lab.sweeps.planning import plan_of, plan_sentences, plan_tables
from evenkeel.trainer.run.config.yaml_document import write
from tests.paths import ROOT
from tests.trainer.lab.reports.recorded_sweep import record_run


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def sweep_file(folder: Path, **changes: Any) -> Path:
    settings = {
        "config": str(ROOT / "configs/quickstart.yaml"),
        "baseline": "grpo",
        "seeds": [0, 1, 2, 3, 4],
        "variants": {"grpo": {}, "ar": {"algorithm.token_weight": {"name": "adv_reweight", "alpha": 0.2}}},
        "output_dir": str(folder / "sweep"),
        "executor": {"kind": "local", "parallel": 2},
    }
    path = folder / "planned.yaml"
    path.write_text(write({**settings, **changes}))
    return path


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


def test_a_cell_costs_what_its_run_took_up_to_there(pilot: Pilot):
    """90 s in all, of which three evaluations of 1 s: after 10 of 20 batches 43.5 s and two evaluations."""
    assert pilot.points[0].hours * 3600 == pytest.approx(43.5 + 2)
    assert pilot.points[1].hours * 3600 == pytest.approx(90)
    assert pilot.points[1].evaluation_hours * 3600 == pytest.approx(3)


def test_a_cell_costs_its_wall_time_and_one_of_unknown_cost_does_not_count(tmp_path: Path):
    """90 min on four devices are 90 min of wall time; the other cells say nothing and 0 s."""
    folder = record_cells(tmp_path / "sweep", ["grpo-s0", "grpo-s1", "grpo-s2"])
    (folder / "grpo-s0/run/manifest.json").write_text('{"world_size": 4}')
    for cell, seconds in (("grpo-s0", 5400.0), ("grpo-s1", None), ("grpo-s2", 0.0)):
        (folder / f"{cell}/run/summary.json").write_text(json.dumps({"wall_seconds": seconds}))
    assert read_pilot(folder, "").points[-1].hours == pytest.approx(1.5)
    (folder / "grpo-s0/run/summary.json").write_text('{"wall_seconds": null}')
    assert math.isnan(read_pilot(folder, "").points[-1].hours)


def test_the_plan_is_the_power_of_the_verdict_at_the_pilots_variances(pilot: Pilot, tmp_path: Path):
    sweep, _ = load_sweep(sweep_file(tmp_path))
    plan = plan_of(sweep, pilot, samples=1, items=256, wanted=0.1)
    components = pilot.points[-1].components
    assert plan.planned.detectable == detectable_difference(components, 5, 256)
    assert plan.planned.power == verdict_power(0.1, components, 5, 256)
    assert plan.curve[plan.planned.detectable] == pytest.approx(0.8, abs=0.001)
    assert plan.between[0] < plan.planned.detectable < plan.between[1]
    assert (plan.cells, plan.tuning_cells, plan.parallel) == (10, 0, 2)
    evaluations = 3 * 256 / 23
    assert plan.planned.hours * 3600 == pytest.approx(10 * (87 + evaluations))
    assert {(design.seeds, design.items) for design in plan.by_size} == {
        (seeds, items) for seeds in (3, 5, 8, 12, 20) for items in (64, 256, 1024)
    }


def test_the_cells_of_the_tuning_are_paid_for_too(pilot: Pilot, tmp_path: Path):
    tune = {
        "grid": {"trl.beta": [0.0, 0.1]},
        "seeds": [100, 101, 102],
        "held_out": {"data.test.generator.seed": 77},
    }
    sweep, _ = load_sweep(sweep_file(tmp_path, tune=tune))
    plan = plan_of(sweep, pilot, samples=1)
    assert plan.tuning_cells == 2 * 2 * 3
    assert plan.planned.hours * 3600 == pytest.approx(90 * (10 + 12))


def test_variants_with_three_seeds_in_common_are_paired(tmp_path: Path):
    names = [f"{variant}-s{seed}" for variant in ("grpo", "ar") for seed in range(3)]
    found = read_pilot(record_cells(tmp_path / "sweep", names), "")
    assert found.paired
    assert found.points[-1].components.freedom == 2


def test_the_command_prints_the_plan(tmp_path: Path, capsys):
    file = sweep_file(tmp_path)
    folder = record_cells(tmp_path / "earlier", ["grpo-s0", "grpo-s1"])
    options = ["--pilot", str(folder), "--items", "100", "--difference", "0.3"]
    assert script.main(["plan", str(file), *options]) == 0
    said = capsys.readouterr().out
    assert "With 5 seeds and 100 items it detects a true difference of" in said
    assert "What it misses:" in said
    assert "Where the noise of a difference comes from" in said
    assert "differences in the pilot" in said
    assert script.main(["plan", str(file), *options, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["planned"]["seeds"], data["planned"]["items"], data["wanted"]) == (5, 100, 0.3)
    assert [row["rollouts"] for row in data["by_rollouts"]] == [10.0, 20.0]


def test_with_looks_all_numbers_are_those_of_the_last_looks_interval(pilot: Pilot, tmp_path: Path):
    """At looks after 3, 4 and 5 seeds the last level is 3.6 %: more seeds are needed than by 95 % intervals."""
    stopping = {"rule": "group_sequential", "looks": [3, 4, 5]}
    with_looks = plan_of(load_sweep(sweep_file(tmp_path, stopping=stopping))[0], pilot, 1, wanted=0.3)
    without = plan_of(load_sweep(sweep_file(tmp_path))[0], pilot, 1, wanted=0.3)
    assert (without.confidence, round(with_looks.confidence, 3)) == (0.95, 0.964)
    components = pilot.points[-1].components
    for plan in (with_looks, without):
        for design in plan.by_size:
            expected = detectable_difference(components, design.seeds, design.items, 1, confidence=plan.confidence)
            assert design.detectable == expected
        power = [
            verdict_power(0.3, components, seeds, pilot.num_items, 1, plan.confidence)
            for seeds in (plan.seeds_needed - 1, plan.seeds_needed)
        ]
        assert power[0] < 0.8 <= power[1]
    assert with_looks.seeds_needed >= without.seeds_needed
    said = "judged by the last look's 96.4% interval"
    assert said in " ".join(plan_sentences(with_looks))
    assert [said in table.caption for table in plan_tables(with_looks)] == [True, True, False, False]
    assert said not in " ".join(plan_sentences(without))

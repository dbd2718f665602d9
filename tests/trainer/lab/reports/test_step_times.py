"""The report shows where a step's time went."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenkeel.trainer.lab.reports import report_on
from evenkeel.trainer.lab.reports.curves import JUDGING, MOST_POINTS, PHASES, step_times
from evenkeel.trainer.lab.reports.figures import Stack, stack_figures
from evenkeel.trainer.lab.reports.run_files import read_runs
from evenkeel.trainer.step.phases import TIMED
from tests.trainer.lab.reports.recorded_sweep import record_run, record_sweep


def test_every_phase_that_is_timed_is_drawn():
    assert list(PHASES) == list(TIMED)


def test_phases_that_took_time_are_stacked_and_all_judging_stands_beside_them(tmp_path: Path):
    stack = step_times(read_runs(record_run(tmp_path / "run")))["one run"]
    assert list(stack.points) == list(range(1, 21))
    assert {name: set(values) for name, values in stack.layers.items()} == {
        "generation": {4.0},
        "scoring, reference": {1.0},
        "waiting for verdicts": {0.25},
        "update": {2.5},
    }
    assert set(stack.lines[JUDGING]) == {1.25}


def test_steps_of_one_rollout_batch_and_seeds_are_averaged_and_long_runs_drawn_with_fewer_points(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", seeds=(0, 1))
    for seed, update in ((0, 1.0), (1, 3.0)):
        lines = [{"step": step, "timing/update_s": update + step % 2} for step in range(1, 601)]
        path = sweep / f"lopti-s{seed}/run/metrics.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    stack = step_times(read_runs(sweep))["lopti"]  # two optimizer steps a rollout batch
    assert len(stack.points) == MOST_POINTS
    assert stack.points[-1] == 300
    assert set(stack.layers["update"]) == {2.5}
    assert stack.lines == {}


@pytest.mark.slow
def test_a_run_without_times_has_no_picture_of_them(tmp_path: Path):
    run = record_run(tmp_path / "run")
    assert "times" in report_on(run).pictures
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines = [{name: value for name, value in line.items() if not name.startswith("timing/")} for line in lines]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "times" not in report_on(run).pictures


def test_a_stack_keeps_its_colours_and_its_legend_goes_from_the_bottom_up():
    points, ones = np.array([1.0, 2.0]), np.ones(2)
    order = ["a", "b", "c"]
    stacks = {
        "one": Stack(points, {"c": ones, "a": ones}, {"line": ones}),
        "two": Stack(points[:1], {"c": ones[:1]}, {}),
    }
    first, second, legend = stack_figures("t", stacks, "x", "y", order)
    assert [legend.index(f">{name}</text>") for name in ("a", "c", "line")] == sorted(
        legend.index(f">{name}</text>") for name in ("a", "c", "line")
    )
    assert ">b</text>" not in legend
    colour_of_c = "#009e73"
    assert all(colour_of_c in svg.lower() for svg in (first, second, legend))

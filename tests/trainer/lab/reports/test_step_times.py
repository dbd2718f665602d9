"""The report shows where a step's time went."""

import json
from pathlib import Path

from evenkeel.trainer.lab.reports.curves import MOST_POINTS, PHASES, step_times
from evenkeel.trainer.lab.reports.run_files import read_runs
from evenkeel.trainer.step.phases import TIMED
from tests.trainer.lab.reports.recorded_sweep import record_sweep


def test_every_phase_that_is_timed_is_drawn():
    assert list(PHASES) == list(TIMED)


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

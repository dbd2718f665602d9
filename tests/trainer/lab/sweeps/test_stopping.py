"""Sweeps with looks: what would not work is refused, cells wait for looks, and the report says what each ended."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports import report_on
from evenkeel.trainer.lab.sweeps import commands, runner, starting
from evenkeel.trainer.lab.sweeps.cells import Cell, cells_of
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.status import status_table
from evenkeel.trainer.lab.sweeps.stopping import LookGate, check_looks_unchanged
from evenkeel.trainer.lab.sweeps.tuning import confirmation_stage, provisional_settings, tuning_stage
from evenkeel.trainer.run.config import ConfigError
from evenkeel.trainer.run.config.yaml_document import write
from tests.paths import ROOT

GAINS: dict[str, list[float]] = {
    "grpo": [0.0, 0.0, 0.0, 0.0, 0.0],
    "better": [0.20, 0.21, 0.20, 0.20, 0.20],
    "same": [0.01, -0.01, 0.0, 0.3, 0.3],
    "maybe": [0.02, 0.03, 0.01, 0.02, 0.025],
}
"""Accuracies above 0.5 of each seed. After three seeds better is decided (t = 61), same is hopeless, and maybe goes on
(t = 3.5, and 11.4 would decide)."""
SCRIPT = """
import json, pathlib, sys
given = dict(word.split("=", 1) for word in sys.argv if "=" in word)
run = pathlib.Path(given["output_dir"])
run.mkdir(parents=True)
gains = json.loads(pathlib.Path(__file__).with_name("gains.json").read_text())
accuracy = 0.5 + gains[given["name"]][int(given["seed"])]
(run / "metrics.jsonl").write_text(json.dumps({"step": 25, "eval/test/avg@1": accuracy, "num_tokens": 1000}) + "\\n")
(run / "summary.json").write_text(json.dumps({"optimizer_steps": 25, "wall_seconds": 2.0}))
"""


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def sweep_file(folder: Path, **changes: Any) -> Path:
    advantages = {"better": "rloo", "same": "dr_grpo", "maybe": "opo"}
    settings = {
        "config": str(ROOT / "configs/quickstart.yaml"),
        "baseline": "grpo",
        "seeds": [0, 1, 2, 3, 4],
        "variants": {name: {"algorithm.advantage": advantages[name]} if name != "grpo" else {} for name in GAINS},
        "stopping": {"rule": "group_sequential", "looks": [3, 5]},
        "output_dir": str(folder / "sweep"),
        "executor": {"kind": "local", "parallel": 4},
    }
    path = folder / "looks.yaml"
    path.write_text(write({key: value for key, value in {**settings, **changes}.items() if value is not ...}))
    return path


def looks(*numbers: int, **more: Any) -> dict[str, Any]:
    return {"stopping": {"rule": "group_sequential", "looks": list(numbers), **more}}


REFUSALS = [
    (looks(5), "holds one look, at 5 seeds, and one at the end is what a sweep without `stopping:` takes. Write an"),
    ({"stopping": {"rule": "group_sequential", "looks": []}}, "at least 1 item"),
    (looks(3, 4), "ends at 4 seeds, and `seeds:` holds 5: the last look is at all of them. Write [3, 5]."),
    (looks(4, 3, 5), "is not increasing"),
    (looks(2, 5), "starts at 2 seeds, and fewer than 3 give no verdict. Start at 3 seeds or later."),
    (looks(3, 5, futility=0.7), "stopping.futility"),
    (looks(3, 5) | {"variants": {"grpo": {}}}, "is given for a single variant, and looks are at comparisons"),
    ({"stopping": {"rule": "pocock", "looks": [3, 5]}}, "stopping.rule"),
]


@pytest.mark.parametrize(("changes", "expected"), REFUSALS, ids=[case[1] for case in REFUSALS])
def test_looks_that_cannot_work_are_refused(tmp_path: Path, changes: dict[str, Any], expected: str):
    with pytest.raises(ConfigError) as refusal:
        load_sweep(sweep_file(tmp_path, **changes))
    assert expected in str(refusal.value)


def recorded(folder: Path, seeds: Mapping[str, Sequence[int]], **changes: Any) -> tuple[Path, list[Cell]]:
    """The sweep's directory with finished cells: variant → seeds."""
    sweep, _ = load_sweep(sweep_file(folder, **changes))
    cells, root = cells_of(sweep), Path(sweep.output_dir)
    described = [{"name": c.name, "variant": c.variant, "baseline": c.baseline, "seed": c.seed} for c in cells]
    root.mkdir(exist_ok=True)
    stopping = sweep.stopping and sweep.stopping.model_dump()
    record = {"name": "looks", "stopping": stopping, "seeds": sweep.seeds, "cells": described}
    (root / "sweep.json").write_text(json.dumps(record))
    for variant, finished in seeds.items():
        for seed in finished:
            run = root / f"{variant}-s{seed}" / "run"
            run.mkdir(parents=True, exist_ok=True)
            accuracy = 0.5 + GAINS[variant][seed]
            (run / "metrics.jsonl").write_text(json.dumps({"step": 25, "eval/test/avg@1": accuracy}) + "\n")
            (run / "summary.json").write_text('{"wall_seconds": 3}')
    return root, cells


def turns(
    folder: Path, seeds: Mapping[str, Sequence[int]], failed: Sequence[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Cell → whether it may start, and what was said; all unfinished cells wait but those that failed."""
    root, cells = recorded(folder, seeds)
    said: list[str] = []
    gate = LookGate(load_sweep(folder / "looks.yaml")[0], cells, root, said.append)
    done = {f"{variant}-s{seed}" for variant, finished in seeds.items() for seed in finished}
    gate.update({cell.name for cell in cells} - done - {*failed})
    return {cell.name: gate.turn(cell) for cell in cells}, said


FIRST_THREE = dict.fromkeys(GAINS, (0, 1, 2))


def test_cells_beyond_the_first_look_wait_for_it(tmp_path: Path):
    found, said = turns(tmp_path, {})
    assert {name for name, turn in found.items() if turn == "wait"} == {f"{v}-s{s}" for v in GAINS for s in (3, 4)}
    assert said == []
    found, _ = turns(tmp_path, {**FIRST_THREE, "better": [0, 1]})
    assert (found["better-s3"], found["maybe-s3"], found["grpo-s3"]) == ("wait", "start", "start")


def test_decided_and_hopeless_comparisons_end_and_the_baseline_serves_the_rest(tmp_path: Path):
    found, said = turns(tmp_path, FIRST_THREE)
    assert {name for name, turn in found.items() if turn == "never"} == {"better-s3", "better-s4", "same-s3", "same-s4"}
    assert (found["maybe-s4"], found["grpo-s4"]) == ("start", "start")
    assert said[0].startswith("better: look at 3 seeds: better, difference +0.203 [")
    assert said[1].startswith("same: look at 3 seeds: hopeless")
    assert said[1].endswith("its other cells are not started")
    not_needed = json.loads((tmp_path / "sweep/looks.json").read_text())["not_needed"]
    assert not_needed == ["better-s3", "same-s3", "better-s4", "same-s4"]


def test_a_look_that_lacks_a_failed_run_is_left_out(tmp_path: Path):
    found, said = turns(tmp_path, {**FIRST_THREE, "better": [0, 1]}, failed=["better-s2"])
    assert "better: the look at 3 seeds is skipped: some of its runs have no judged answer" in said
    assert found["better-s3"] == "start"


def test_a_report_between_looks_says_what_the_last_look_said(tmp_path: Path):
    """The fourth seed is there and is not looked at: three of `maybe` decide nothing, four would at 5 %."""
    root, _ = recorded(tmp_path, {**FIRST_THREE, "maybe": [0, 1, 2, 3], "grpo": [0, 1, 2, 3]})
    report = report_on(root)
    found = {contrast.variant: contrast for contrast in report.main.contrasts}
    assert found["maybe"].seeds == [0, 1, 2]
    assert found["maybe"].verdict.sentence == "no verdict yet at look 1 of 2: the next one is at 5 seeds"
    assert found["better"].verdict.sentence == "better (3 seeds, look 1 of 2)"
    assert found["same"].verdict.outcome == "not distinguishable"
    assert "stopped at look 1 of 2, where the chance that 5 seeds would tell them apart was 0.07" in (
        found["same"].verdict.sentence
    )
    assert "same at 3 seeds (hopeless)" in report.conditions


def test_the_last_look_is_stricter_than_a_sweep_without_looks(tmp_path: Path):
    """maybe: five seeds, t = .021 / (.00742 / √5) = 6.3, and interval and p are wider than those of one look."""
    everything = dict.fromkeys(GAINS, range(5))
    contrast = report_on(recorded(tmp_path, everything)[0]).main.contrast_of("maybe")
    (tmp_path / "plain").mkdir()
    plain = report_on(recorded(tmp_path / "plain", everything, stopping=...)[0]).main.contrast_of("maybe")
    assert (contrast.verdict.sentence, plain.verdict.sentence) == ("better (5 seeds, look 2 of 2)", "better (5 seeds)")
    assert contrast.difference.low < plain.difference.low
    assert contrast.difference.value == plain.difference.value
    assert plain.p_value < contrast.p_value < 0.05
    assert contrast.adjusted_p >= contrast.p_value
    assert plain.looks == []


def test_looks_may_not_change_once_there_are_results(tmp_path: Path):
    root, _ = recorded(tmp_path, FIRST_THREE)
    for changes in (looks(3, 4, 5), {"stopping": ...}, looks(3, 6) | {"seeds": [0, 1, 2, 3, 4, 5]}):
        with pytest.raises(Refusal, match="do not keep false verdicts at 5 %"):
            check_looks_unchanged(load_sweep(sweep_file(tmp_path, **changes))[0], root)
    check_looks_unchanged(load_sweep(sweep_file(tmp_path, **looks(3, 5, futility=0)))[0], root)


def test_tuning_is_not_looked_at_and_its_confirmation_is(tmp_path: Path):
    tune = {"grid": {"trl.beta": [0.0, 0.1]}, "seeds": [100], "held_out": {"data.test.generator.seed": 77}}
    sweep, _ = load_sweep(sweep_file(tmp_path, tune=tune))
    assert tuning_stage(sweep).stopping is None
    assert confirmation_stage(sweep, provisional_settings(sweep)).stopping == sweep.stopping


@pytest.mark.slow
def test_a_sweep_stops_early_goes_on_when_asked_to_and_says_so(tmp_path: Path, monkeypatch, capsys):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "gains.json").write_text(json.dumps(GAINS))
    monkeypatch.setattr(starting, "launcher_of", lambda sweep: [sys.executable, str(script)])
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.05)
    file = sweep_file(tmp_path)
    assert commands.run(file) == 0
    said = capsys.readouterr().out
    assert said.count(": started") == 4 * 3 + 2 * 2
    assert "4 not needed after a look" in said
    report = report_on(tmp_path / "sweep")
    assert report.headline == "Against grpo, better: better, maybe; not distinguishable: same."
    stops = "better at 3 seeds (better), same at 3 seeds (hopeless); 4 of 20 cells were not run."
    assert report.conditions.endswith(f"Stopped early: {stops}")
    assert len(status_table(tmp_path / "sweep").rows) == 20
    assert commands.run(file) == 0
    assert ": started" not in capsys.readouterr().out
    assert commands.run(sweep_file(tmp_path, **looks(3, 5, futility=0))) == 0
    assert capsys.readouterr().out.count(": started") == 2  # same-s3 and same-s4, and not better's

"""Tuned comparisons: equal budgets, choices on seeds and rows of their own, and a whole run of both stages."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.contents import report_on
from evenkeel.trainer.lab.reports.page import html_page, markdown_page
from evenkeel.trainer.lab.sweeps import commands, starting
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.loading import load_sweep
from evenkeel.trainer.lab.sweeps.plans import plans_of
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.lab.sweeps.tuning import (
    check_stages,
    choices,
    confirmation_stage,
    provisional_settings,
    tuning_stage,
)
from evenkeel.trainer.run.config.yaml_document import Node
from tests.trainer.lab.sweeps import test_sweep_file

TUNE: dict[str, Any] = {
    "grid": {"trl.learning_rate": [1e-3, 3e-3]},
    "seeds": [100, 101],
    "held_out": {"data.test.generator.seed": 77},
}
SCRIPT = '''
"""Stands for training: the accuracy is 0.5, and 0.25 more at the rate that suits the variant."""
import json, pathlib, sys
given = dict(word.split("=", 1) for word in sys.argv if "=" in word)
run = pathlib.Path(given["output_dir"])
run.mkdir(parents=True)
suits = {"grpo": "0.001", "rloo": "0.003"}[given["name"].strip(chr(34)).split(",")[0]]
accuracy = 0.5 + 0.25 * (float(given["trl.learning_rate"]) == float(suits)) + 0.001 * (int(given["seed"]) % 3)
lines = [{"step": 25, "eval/test/avg@1": accuracy, "num_tokens": 1000}]
(run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\\n" for line in lines))
(run / "summary.json").write_text(json.dumps({"optimizer_steps": 25, "wall_seconds": 2.0}))
'''


def sweep_file(folder: Path, tune: Mapping[str, Any] = TUNE, **changes: Any) -> Path:
    given = {"seeds": [0, 1, 2], "output_dir": str(folder / "sweep"), "tune": dict(tune), "retries": 0, **changes}
    return test_sweep_file.sweep_file(folder, **given)


def loaded(folder: Path, **tune: Any) -> tuple[Sweep, Node]:
    return load_sweep(sweep_file(folder, {**TUNE, **tune}))


REFUSALS = [
    ({"tune": {**TUNE, "seeds": [2, 100]}}, "tune.seeds: holds 2, which the verdict uses too"),
    ({"tune": {**TUNE, "grid": {"seed": [1, 2]}}}, "tune.grid.seed: is set by the sweep"),
    ({"tune": {**TUNE, "held_out": {"data.train.max_rows": 3}}}, "is not a setting of the held-out rows"),
    ({"grid": {"trl.beta": [0.0, 0.1]}}, "grid: cannot be combined with `tune:`"),
    ({"variants": {"grpo": {"trl.learning_rate": 1e-2}}}, "is also in the grid"),
    ({"tune": {"grid": TUNE["grid"], "seeds": [100]}}, "held_out"),
]


@pytest.mark.parametrize(("changes", "expected"), REFUSALS, ids=[case[1] for case in REFUSALS])
def test_what_would_not_be_a_fair_tuning_is_refused(tmp_path: Path, changes: dict[str, Any], expected: str):
    with pytest.raises(Refusal) as refusal:
        load_sweep(sweep_file(tmp_path, **changes))
    assert expected in str(refusal.value)


def test_the_confirmation_has_the_chosen_settings_and_no_row_of_the_tuning(tmp_path: Path):
    sweep, tree = loaded(tmp_path)
    stage = confirmation_stage(sweep, {"grpo": {"trl.learning_rate": 1e-3}, "rloo": {"trl.learning_rate": 3e-3}})
    plans = plans_of(stage, cells_of(stage), tree)
    assert {(p.cell.variant, p.config.trl["learning_rate"]) for p in plans} == {("grpo", 1e-3), ("rloo", 3e-3)}
    assert {plan.cell.seed for plan in plans} == {0, 1, 2}
    tuning = tuning_stage(sweep)
    check_stages(plans_of(tuning, cells_of(tuning), tree), plans)


def test_rows_that_the_verdict_rests_on_are_refused_for_tuning(tmp_path: Path):
    sweep, tree = loaded(tmp_path)
    (base,) = plans_of(stage := confirmation_stage(sweep, provisional_settings(sweep)), cells_of(stage)[:1], tree)
    same = {"data.test.generator.seed": base.config.data.model_dump()["test"]["generator"]["seed"]}
    sweep, tree = loaded(tmp_path, held_out=same)
    tuning, stage = tuning_stage(sweep), confirmation_stage(sweep, provisional_settings(sweep))
    with pytest.raises(Refusal, match="names the verdict's own rows"):
        check_stages(plans_of(tuning, cells_of(tuning), tree), plans_of(stage, cells_of(stage), tree))


def recorded(directory: Path, accuracies: Mapping[str, float | None]) -> Path:
    """A finished tuning: cell → accuracy; ``None`` for a run that did not finish."""
    cells = []
    for name, accuracy in accuracies.items():
        variant, _, seed = name.rpartition("-s")
        cells.append({"name": name, "variant": variant, "baseline": "grpo" + variant[4:], "seed": int(seed)})
        if accuracy is not None:
            run = directory / name / "run"
            run.mkdir(parents=True)
            line = {"step": 25, "eval/test/avg@1": accuracy, "num_tokens": 500}
            (run / "metrics.jsonl").write_text(json.dumps(line) + "\n")
            (run / "summary.json").write_text('{"wall_seconds": 3}')
    (directory / "sweep.json").write_text(json.dumps({"name": "tuning", "baseline": "grpo", "cells": cells}))
    return directory


ACCURACIES = {
    "grpo,learning_rate=0.001-s100": 0.5,
    "grpo,learning_rate=0.001-s101": 0.9,
    "grpo,learning_rate=0.003-s100": 0.8,
    "grpo,learning_rate=0.003-s101": 0.5,
    "rloo,learning_rate=0.001-s100": 0.4,
    "rloo,learning_rate=0.001-s101": 0.4,
    "rloo,learning_rate=0.003-s100": 0.3,
    "rloo,learning_rate=0.003-s101": 0.5,
}


def test_the_best_mean_over_the_tunings_seeds_is_chosen(tmp_path: Path):
    (tmp_path / "tuning").mkdir()
    chosen = choices(loaded(tmp_path)[0], recorded(tmp_path / "tuning", ACCURACIES))
    # (0.5 + 0.9) / 2 = 0.7 over (0.8 + 0.5) / 2 = 0.65
    assert (chosen["grpo"].point, chosen["grpo"].settings) == ("learning_rate=0.001", {"trl.learning_rate": 1e-3})
    assert chosen["grpo"].accuracies == pytest.approx({"learning_rate=0.001": 0.7, "learning_rate=0.003": 0.65})
    assert chosen["rloo"].point == "learning_rate=0.001"  # 0.4 both: the first of the grid


def test_unequal_budgets_choose_nothing(tmp_path: Path):
    (tmp_path / "tuning").mkdir()
    lacking = {**ACCURACIES, "rloo,learning_rate=0.003-s101": None}
    with pytest.raises(Refusal, match=r"lacks rloo,learning_rate=0.003-s101: budgets would be unequal"):
        choices(loaded(tmp_path)[0], recorded(tmp_path / "tuning", lacking))
    one, more = loaded(tmp_path, seeds=[100])[0], loaded(tmp_path, grid={"trl.learning_rate": [1e-3, 1e-2]})[0]
    assert choices(one, tmp_path / "tuning")["grpo"].point == "learning_rate=0.003"  # by the seed that is left
    with pytest.raises(Refusal, match=r"lacks grpo,learning_rate=0.01-s100, rloo,learning_rate=0.01-s100"):
        choices(more, tmp_path / "tuning")


@pytest.mark.slow
def test_both_stages_run_and_the_report_says_how_settings_were_chosen(tmp_path: Path, monkeypatch, capsys):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    for module in (starting, commands):  # what would be forked ends at once
        monkeypatch.setattr(module, "launcher_of", lambda sweep: [sys.executable, str(script)])
    tune = {**TUNE, "seeds": [100]}
    file = sweep_file(tmp_path, tune, seeds=[0, 1, 2], executor={"kind": "local", "parallel": 4})
    assert commands.run(file) == 0
    said = capsys.readouterr().out
    assert "Tuning: 2 runs of every variant; each takes its best point to 3 fresh seeds." in said
    assert "rloo is confirmed at learning_rate=0.003." in said
    report = report_on(tmp_path / "sweep")
    assert [round(row.final.value, 3) for row in report.main.variants] == [0.751, 0.751]
    for page in (html_page(report), markdown_page(report)):
        assert "every variant uses its own best of 2 points of trl.learning_rate, chosen by 2 runs each" in page
        assert "learning_rate=0.001: 0.501; learning_rate=0.003: 0.751" in page  # rloo's, seed 100 % 3 = 1
    assert "Compared at a single learning rate" in report_on(tmp_path / "sweep/tuning").conditions
    assert commands.run(file) == 0  # nothing is left to do
    assert "started" not in capsys.readouterr().out

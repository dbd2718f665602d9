"""A run's directory: what is written once and kept by a resume, and how it is read; damage is refused by its name."""

import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evenkeel.trainer.run.callbacks.records import MetricsFile
from evenkeel.trainer.run.record import run_time
from evenkeel.trainer.run.record.files import SECONDS, DamagedFileError, write_json
from evenkeel.trainer.run.record.rollouts import begin_rollouts, rollout_file, write_rollouts
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.run.record.run_time import RunTime
from evenkeel.trainer.run.summary import draw_reward_curve, write_summary

NUMBERS = {"n_items": 8, "k": 0, "temperature": None, "interval": "Wilson, 95 %"}


def evaluated(run: Path, **metrics: object) -> RunRecord:
    write_json(run / "evaluations/held_out/step-000004.json", {**NUMBERS, **metrics})
    return RunRecord(run)


def test_a_line_that_was_cut_off_is_left_out_and_one_that_holds_no_metrics_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n{"step": 2}\n{"step": 3')
    record = RunRecord(tmp_path)
    assert record.metrics == [{"step": 1, "reward": 0.5}, {"step": 2}]
    assert [record.metric_at(step, "reward") for step in (1, 2)] == [0.5, None]
    for line in ("[]", '{"step": true}', '{"step": 2, "reward": "high"}'):
        (tmp_path / "metrics.jsonl").write_text(f'{{"step": 1}}\n{line}\n{{"step": 3}}\n')
        with pytest.raises(DamagedFileError, match="line 2"):
            _ = RunRecord(tmp_path).metrics


def test_evaluations_are_found_by_set_and_step(tmp_path: Path) -> None:
    record = evaluated(tmp_path, greedy={"value": 0.5, "low": 0.2, "high": 0.8})
    (tmp_path / "evaluations/held_out/step-best.json").write_text("{}")
    assert list(record.evaluations["held_out"]) == [4]
    assert record.evaluation("held_out", 4)["greedy"]["low"] == 0.2
    assert record.evaluation("held_out", 5) == {}


def test_a_damaged_manifest_is_refused_and_a_damaged_summary_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[]")
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(DamagedFileError, match=r"manifest\.json is damaged: .* as it was written"):
        _ = RunRecord(tmp_path).manifest
    assert RunRecord(tmp_path).summary == {}


def test_summary_and_curve_come_from_the_runs_own_files(tmp_path: Path):
    lines = [{"step": 0, "eval_verifier/accuracy": 0.25}, {"step": 1, "reward": 0.5}, {"step": 2, "reward": None}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    draw_reward_curve(tmp_path)
    assert (tmp_path / "reward_curve.png").stat().st_size > 5_000
    write_summary(tmp_path, {"name": "run", "accuracy_after": 0.123456, "token_weight": None})
    assert "| accuracy after | 0.1235 |" in (tmp_path / "summary.md").read_text()
    assert json.loads((tmp_path / "summary.json").read_text())["accuracy_after"] == 0.123456


def test_a_resume_keeps_the_lines_up_to_its_checkpoint_but_the_end_of_the_run_before(tmp_path: Path):
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    kept = [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 0.2}]
    trained_again = [{"step": 2, "train_runtime": 1.0}, {"step": 3, "loss": 0.3}]
    metrics.path.write_text("".join(f"{json.dumps(line)}\n" for line in [*kept, *trained_again]))
    metrics.on_train_begin(None, SimpleNamespace(is_world_process_zero=True, global_step=2), None)
    assert [json.loads(line) for line in metrics.path.read_text().splitlines()] == kept


ROW: dict[str, list[Any]] = {"batch": [3], "row": [0], "completion_ids": [[5, 6]], "correct": [True]}
ROW |= {"completion": ["a lone \ud800 surrogate"]}
ROW |= {name: [None] for name in ("advantages", "rewards/format", "format/reason")}


def test_an_interrupted_run_leaves_the_files_of_one_that_was_not(tmp_path: Path):
    """Killed in batch 5, resumed from batch 3; another rank's files are its own."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder, parts in ((whole, [range(7)]), (cut, [range(5), range(3, 7)])):
        for part in parts:
            begin_rollouts(folder, part[0], 0)
            for number in part:
                write_rollouts(rollout_file(folder, number, 0), {**ROW, "step": [number]})
    begin_rollouts(cut, 0, rank=1)
    one, other = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (cut, whole))
    assert one == other


def test_a_part_that_is_killed_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill leaves is the file as it was while the clock ran."""
    monkeypatch.setattr(run_time, "SECONDS_BETWEEN_WRITES", 0.02)
    for name in ("run", "killed"):
        (tmp_path / name).mkdir()
    with RunTime(tmp_path / "run"):
        time.sleep(0.3)
        shutil.copy(tmp_path / "run" / SECONDS, tmp_path / "killed")
    killed = RunRecord(tmp_path / "killed").seconds
    assert 0 < killed <= RunRecord(tmp_path / "run").seconds
    with RunTime(tmp_path / "killed"):
        pass
    first, _ = RunRecord(tmp_path / "killed").parts
    assert first["seconds"] == killed

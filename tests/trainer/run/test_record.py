"""A run's directory is read in one place: what is absent is empty, what is damaged is refused by its name."""

from pathlib import Path

import pytest

from evenkeel.trainer.run.record.files import DamagedFileError, write_json
from evenkeel.trainer.run.record.run_record import RunRecord

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

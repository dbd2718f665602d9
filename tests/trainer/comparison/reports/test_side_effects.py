"""Columns beside accuracy: coverage that is left, the learning tax, and accuracy at equally many tokens."""

import json
import math
from pathlib import Path

import pytest

from tests.trainer.comparison.reports.chromium import EXECUTABLE, visit
from tests.trainer.comparison.reports.recorded_sweep import record_run
from trainer.comparison.reports.equal_tokens import accuracies_at, common_tokens
from trainer.comparison.reports.run_files import RecordedRun
from trainer.comparison.reports.side_effects import coverage_gap, learning_taxes, taxes_in_words


def run_of(folder: Path, *lines: dict[str, float], per_rollout: float = 1.0) -> RecordedRun:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RecordedRun(folder, "variant", 0, per_rollout)


def evaluated(step: int, average: float, passed: float, samples: int = 8) -> dict[str, float]:
    return {"step": step, f"eval/test/avg@{samples}": average, f"eval/test/pass@{samples}": passed}


def test_the_gap_is_that_of_the_last_evaluation(tmp_path: Path):
    first = run_of(tmp_path / "a", evaluated(0, 0.2, 0.9), evaluated(9, 0.5, 0.8))
    second = run_of(tmp_path / "b", evaluated(0, 0.2, 0.9), evaluated(9, 0.6, 0.7))
    found = coverage_gap([first, second], "test")
    assert found.value == pytest.approx((0.3 + 0.1) / 2)
    assert coverage_gap([first, run_of(tmp_path / "c", evaluated(9, 0.6, 0.7, samples=4))], "test") is None
    assert coverage_gap([run_of(tmp_path / "d", {"step": 0, "eval/test/avg@1": 0.5})], "test") is None


def test_the_tax_is_nats_for_each_point_gained(tmp_path: Path):
    """KL .02 (the mean of the last five) on prompts all right, .4 → .6 gained: .02 / 20 points."""
    lines = [{"step": n, "drift/kl_all_right": 5.0 if n < 5 else 0.02} for n in range(10)]
    runs = [run_of(tmp_path / "a", *lines)]
    assert learning_taxes(runs, (0.4, 0.6)) == {"all_right": pytest.approx(0.001)}
    assert math.isnan(learning_taxes(runs, (0.6, 0.6))["all_right"])
    assert learning_taxes(runs, None) == {}
    assert learning_taxes([*runs, run_of(tmp_path / "b", {"step": 1})], (0.4, 0.6)) == {}
    assert taxes_in_words({"all_right": 0.001}) == "1 / –"


def test_accuracy_at_equal_tokens_lies_between_evaluations(tmp_path: Path):
    """The first needs 100 tokens a batch, the second 50: at 500 both are at the second's end, the first halfway."""
    runs = []
    for name, each in (("a", 100.0), ("b", 50.0)):
        evaluations = [evaluated(step, 0.04 * step, 1.0) for step in (0, 10)]
        runs.append(run_of(tmp_path / name, *evaluations, *({"step": n, "num_tokens": each * n} for n in range(1, 11))))
    tokens = common_tokens({"a": runs[:1], "b": runs[1:]})
    assert tokens == 500
    assert accuracies_at(tokens, runs, "test").tolist() == pytest.approx([0.2, 0.4])
    assert common_tokens({"a": runs[:1], "again": runs[:1]}) is None
    assert common_tokens({"a": runs[:1], "b": [run_of(tmp_path / "c", {"step": 1})]}) is None


def test_accuracy_before_the_first_evaluation_is_not_known(tmp_path: Path):
    """At 500 tokens the first run was at its batch 5 of 10, and is evaluated after the last alone."""
    counts = [{"step": n, "num_tokens": 100.0 * n} for n in range(1, 11)]
    late = run_of(tmp_path / "late", *counts, evaluated(10, 0.4, 1.0))
    least = run_of(tmp_path / "least", *counts[:5], evaluated(5, 0.3, 1.0))
    assert math.isnan(accuracies_at(500, [late], "test")[0])
    assert accuracies_at(1000, [late], "test").tolist() == [0.4]
    assert common_tokens({"a": [late], "b": [least]}) is None


def test_what_was_generated_after_the_last_evaluation_does_not_count(tmp_path: Path):
    """1,000 tokens, evaluated at 500 of them: what the run would have reached at the other's 800, nobody measured."""
    counts = [{"step": n, "num_tokens": 100.0 * n} for n in range(1, 11)]
    early = run_of(tmp_path / "early", *counts, evaluated(0, 0.1, 1.0), evaluated(5, 0.3, 1.0))
    counts = [{"step": n, "num_tokens": 80.0 * n} for n in range(1, 11)]
    whole = run_of(tmp_path / "whole", *counts, evaluated(0, 0.1, 1.0), evaluated(10, 0.4, 1.0))
    assert math.isnan(accuracies_at(800, [early], "test")[0])
    assert common_tokens({"a": [early], "b": [whole]}) == 500
    assert accuracies_at(500, [early, whole], "test").tolist() == pytest.approx([0.3, 0.1 + 0.3 * 500 / 800])


def test_tokens_that_were_not_logged_are_not_none_spent(tmp_path: Path):
    """The tokens at batch 1 are not known: from 0 on, the accuracy at 500 would lie on the line from there."""
    evaluations = [evaluated(1, 0.0, 1.0), evaluated(10, 0.4, 1.0)]
    sparse = run_of(tmp_path / "sparse", *evaluations, {"step": 10, "num_tokens": 1000.0})
    least = run_of(tmp_path / "least", evaluated(5, 0.3, 1.0), {"step": 5, "num_tokens": 500.0})
    assert math.isnan(accuracies_at(500, [sparse], "test")[0])
    assert common_tokens({"a": [sparse], "b": [least]}) is None


@pytest.mark.slow
def test_the_columns_stand_in_the_page(tmp_path: Path):
    from trainer.comparison.reports import write_report

    run = record_run(tmp_path / "run")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        if "eval/test/avg@1" in line:
            line["eval/test/avg@4"], line["eval/test/pass@4"] = line.pop("eval/test/avg@1"), 0.9
        line["drift/kl_all_wrong"] = 0.01
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, page = write_report(run)
    for words in ("pass@k − avg@k", "learning tax"):
        assert words in page.read_text()
    if EXECUTABLE is not None:
        beyond = "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 400.5).length"
        assert visit(page, tmp_path / "profile", [beyond], width=400).answers == [0]
    for words in ("pass@k − avg@k", "learning tax"):
        assert words in page.with_suffix(".md").read_text()

"""Accuracies of runs that generated different numbers of tokens, compared at the same number."""

import json
import math
from pathlib import Path

import pytest

from evenkeel.trainer.lab.reports.accuracies import accuracies_at, common_tokens
from evenkeel.trainer.lab.reports.run_files import RecordedRun


def run_of(folder: Path, *lines: dict[str, float], per_rollout: float = 1.0) -> RecordedRun:
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return RecordedRun(folder, "variant", 0, per_rollout)


def evaluated(step: int, average: float, passed: float, samples: int = 8) -> dict[str, float]:
    return {"step": step, f"eval/test/avg@{samples}": average, f"eval/test/pass@{samples}": passed}


def test_accuracy_at_equal_tokens_lies_between_evaluations(tmp_path: Path):
    """The first needs 100 tokens a batch, the second 50: at 500 both are at the second's end, the first halfway."""
    runs = []
    for name, each in (("a", 100.0), ("b", 50.0)):
        evaluations = [evaluated(step, 0.04 * step, 1.0) for step in (0, 10)]
        runs.append(run_of(tmp_path / name, *evaluations, *({"step": n, "num_tokens": each * n} for n in range(1, 11))))
    tokens = common_tokens(runs)
    assert tokens == 500
    assert accuracies_at(tokens, runs, "test").tolist() == pytest.approx([0.2, 0.4])
    assert common_tokens([runs[0], runs[0]]) is None
    assert common_tokens([runs[0], run_of(tmp_path / "c", {"step": 1})]) is None


def test_accuracy_before_the_first_evaluation_is_not_known(tmp_path: Path):
    """At 500 tokens the first run was at its batch 5 of 10, and is evaluated after the last alone."""
    counts = [{"step": n, "num_tokens": 100.0 * n} for n in range(1, 11)]
    late = run_of(tmp_path / "late", *counts, evaluated(10, 0.4, 1.0))
    least = run_of(tmp_path / "least", *counts[:5], evaluated(5, 0.3, 1.0))
    assert math.isnan(accuracies_at(500, [late], "test")[0])
    assert accuracies_at(1000, [late], "test").tolist() == [0.4]
    assert common_tokens([late, least]) is None


def test_what_was_generated_after_the_last_evaluation_does_not_count(tmp_path: Path):
    """1,000 tokens, evaluated at 500 of them: what the run would have reached at the other's 800, nobody measured."""
    counts = [{"step": n, "num_tokens": 100.0 * n} for n in range(1, 11)]
    early = run_of(tmp_path / "early", *counts, evaluated(0, 0.1, 1.0), evaluated(5, 0.3, 1.0))
    counts = [{"step": n, "num_tokens": 80.0 * n} for n in range(1, 11)]
    whole = run_of(tmp_path / "whole", *counts, evaluated(0, 0.1, 1.0), evaluated(10, 0.4, 1.0))
    assert math.isnan(accuracies_at(800, [early], "test")[0])
    assert common_tokens([early, whole]) == 500
    assert accuracies_at(500, [early, whole], "test").tolist() == pytest.approx([0.3, 0.1 + 0.3 * 500 / 800])

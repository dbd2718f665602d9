"""Each outcome of runs so small that its number can be worked out by hand, and what reports say of outcomes."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from evenkeel.trainer.lab.reports.contents import report_on
from evenkeel.trainer.lab.reports.outcomes import OUTCOMES, tokens_reached
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.statistics.intervals import StatisticsError
from tests.trainer.lab.reports.recorded_sweep import record_sweep

LOG_2 = math.log(2)


def recorded(
    folder: Path,
    curve: Mapping[int, float],
    series: Mapping[str, Mapping[int, float]] | None = None,
    answers: Mapping[int, Sequence[str]] | None = None,
) -> RecordedRun:
    """A run: step → accuracy, metric → step → value, step → items, each letter an answer: ``.`` wrong, ``?`` none."""
    lines = [{"step": step, "eval/test/avg@2": value} for step, value in curve.items()]
    lines += [{"step": step, key: value} for key, found in (series or {}).items() for step, value in found.items()]
    (folder / "evaluations/test").mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for step, items in (answers or {}).items():
        drawn = [(item, *each) for item, letters in enumerate(items) for each in enumerate(letters)]
        rows = [
            {"item": i, "sample": k, "correct": {".": False, "?": None}.get(letter, True), "answer": letter}
            for i, k, letter in drawn
        ]
        parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"evaluations/test/step-{step:06d}.parquet")
    return RecordedRun(folder, folder.name, 0)


def measured(name: str, *runs: RecordedRun) -> Any:
    return OUTCOMES[name].values(runs, "test")


def test_shares_of_right_answers_and_what_they_cover(tmp_path: Path):
    run = recorded(tmp_path / "a", {4: 0.0}, answers={4: ["x.", "..", "xy"]})
    other = recorded(tmp_path / "b", {4: 0.0}, answers={4: ["x...", "....", "x.xx"]})
    lost = recorded(tmp_path / "c", {4: 0.0}, answers={4: ["x...", "....", "x.x"]})
    assert measured("accuracy", run, other).tolist() == [[0.5, 0, 1], [0.25, 0, 0.75]]
    # pass@2: 1 − C(3, 2) / C(4, 2) = 1/2 of the first of the second run, and 1 of its last
    assert measured("coverage", run, other) == pytest.approx(np.array([[0.5, 0, 0], [0.25, 0, 0.25]]))
    assert measured("coverage", lost, other)[0] == pytest.approx([0.75, 0, math.nan], nan_ok=True)  # pass@4 of two rows


def test_the_end_of_a_run_is_the_last_tenth_of_its_batches_and_the_residual_that_of_all(tmp_path: Path):
    log = dict.fromkeys(range(1, 18), 9.0) | {18: 0.2, 19: 0.4, 20: 0.6}
    series = {"entropy": log, "kl": log, "groups/kl_dead": log, "cancellation/shared_prefix": {1: 0.1, 2: 0.2, 20: 0.6}}
    run = recorded(tmp_path / "a", {0: 0.2, 20: 0.4}, series)
    assert measured("entropy", run) == pytest.approx([0.4])
    assert measured("tax", run) == pytest.approx([math.log(0.4 / 20)])  # 20 points were gained
    assert measured("kl_dead_groups", run) == pytest.approx([0.4])
    assert measured("residual", run) == pytest.approx([0.3])
    run = recorded(tmp_path / "b", {0: 0.2}, {"entropy": {1: 0.5, 2: 0.4, 4: 0.1}})  # means 7/3 and 1/3
    assert measured("entropy_slope", run) == pytest.approx([-95 / 7])  # Σ ΔxΔy = −19/30 over Σ Δx² = 14/3


def test_right_answers_drift_where_fewer_of_them_are_written(tmp_path: Path):
    """As many before and after: half and half, then 3 of 4. Of more after: any two, of which 2 of 3 pairs differ."""
    answers = {0: ["aabb", "ab..", "a..."], 8: ["aaab", "aab.", "aaa."]}
    (found,) = measured("drift_between_right_answers", recorded(tmp_path / "a", {8: 0.0}, answers=answers))
    skewed = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert found == pytest.approx([skewed - LOG_2, 2 / 3 * LOG_2 - LOG_2])  # one right answer has no other
    ends = {"wide": "aaaabbbb", "narrow": "aa......"}
    runs = [recorded(tmp_path / name, {8: 0.0}, answers={0: ["abcdefgh"], 8: [end]}) for name, end in ends.items()]
    wide, narrow = measured("drift_between_right_answers", *runs)
    assert (*wide, *narrow) == pytest.approx(
        (4 / 7 * LOG_2 - LOG_2, -LOG_2)
    )  # of two in both, of which 16 of 28 pairs differ


def test_an_answer_is_what_the_completion_says_rather_than_what_was_read(tmp_path: Path):
    """The verifier reads both orders of the persons as one."""
    run = recorded(tmp_path / "a", {8: 0.0}, answers={0: ["aa"], 8: ["aa"]})
    file = tmp_path / "a/evaluations/test/step-000008.parquet"
    texts = ["<answer>?</answer> so <answer>A, B</answer>", "<answer>?</answer> or <answer>B,\n A</answer>"]
    rows = [{**row, "completion": text} for row, text in zip(parquet.read_table(file).to_pylist(), texts, strict=True)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    assert measured("drift_between_right_answers", run) == pytest.approx(np.array([[LOG_2]]))


def test_jitter_is_the_mean_second_difference(tmp_path: Path):
    run = recorded(tmp_path / "a", {0: 0.1, 5: 0.4, 10: 0.3, 15: 0.5})
    assert measured("jitter", run) == pytest.approx([(0.4 + 0.3) / 2])  # |.3 − .8 + .1|, |.5 − .6 + .4|


def test_tokens_are_counted_to_what_all_runs_reach(tmp_path: Path):
    """.4: three quarters of the way from .1 to .5, and the last point of the other. 100 tokens a step."""
    tokens = {"num_tokens": {step: 100.0 * step for step in (5, 10, 20)}}
    fast = recorded(tmp_path / "a", {0: 0.1, 10: 0.5, 20: 0.3}, tokens)
    slow = recorded(tmp_path / "b", {0: 0.1, 10: 0.3, 20: 0.4}, tokens)
    assert measured("tokens_to_threshold", fast, slow) == pytest.approx(np.log([750, 2000]))
    for start, reached in ((0, 20), (100, 120)):  # .2, where one of them began, or had come to when it was first seen
        falls, rises = tokens_reached([([start, start + 60], each) for each in ([0.5, 0.2], [0.1, 0.4])])
        assert math.isnan(falls)
        assert rises == pytest.approx(math.log(reached))


@pytest.mark.parametrize("name", sorted({*OUTCOMES} - {"accuracy"}))
def test_a_run_without_a_value_is_named_with_the_reason(name: str, tmp_path: Path):
    """The one logs too little; the other fell, its first rows were right once and its last ones not scored."""
    bare = recorded(tmp_path / "bare", {0: 0.3, 10: 0.4}, answers={0: ["a"], 10: ["a"]})
    log = {"kl": {10: 0.1}, "num_tokens": {10: 9.0}}
    fell = recorded(tmp_path / "fell", {0: 0.3, 10: 0.2}, log, {0: ["a."], 10: ["??"]})
    for run, lacking in (
        (bare, True),
        (fell, name in ("entropy", "entropy_slope", "jitter", "kl_dead_groups", "residual")),
    ):
        with pytest.raises(StatisticsError, match=f"{run.variant}-s0: no {name} can be computed. ") as caught:
            measured(name, run)
        assert (f"It takes {OUTCOMES[name].needs}." in str(caught.value)) == lacking


def test_a_report_has_the_outcomes_that_its_sweep_names_and_counts_all_comparisons(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", effects={"ar": 1.5})
    written = json.loads((sweep / "sweep.json").read_text())
    (sweep / "sweep.json").write_text(json.dumps(written | {"outcomes": ["residual", "tax", "accuracy"]}))
    for number, cell in enumerate(each for each in written["cells"] if each["variant"] != "lopti"):
        residual = 0.01 * (number % 3) + (0.2 if cell["variant"] == "ar" else 0.5)
        with (sweep / cell["name"] / "run/metrics.jsonl").open("a") as log:
            log.write(json.dumps({"step": 40, "cancellation/shared_prefix": residual}) + "\n")
    for path in sweep.glob("*/run/metrics.jsonl"):
        path.write_text("".join(line + line.replace("eval/test", "eval/unseen") for line in path.open()))
    report = report_on(sweep)
    assert report.headline == "Against grpo, by residual, better: ar."  # less of it is better
    rows = report.tables["outcome-residual"].rows
    assert [row[-1].text.partition(" (")[0] for row in rows] == ["baseline", "better", "not compared"]
    assert [name for name in report.tables if name.startswith(("verdict", "outcome"))] == [
        "outcome-residual",
        "verdicts",
    ]
    notes = " ".join(report.notes)
    assert "Not compared in tax: ar with grpo. ar-s0, " in notes
    assert "5 comparisons of equals give about 0.25 verdicts" in notes
    assert [report.tables[name].headings[3].note for name in ("verdicts", "held-out-1")] == ["of 5", "of 5"]
    smallest = min((each for found in report.comparisons for each in found.contrasts), key=lambda each: each.p_value)
    assert smallest.adjusted_p == min(1.0, 5 * smallest.p_value)

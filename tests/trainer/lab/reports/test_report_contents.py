"""What is read from a sweep's files, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import stats

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.accuracies import accuracy_change, final_accuracies
from evenkeel.trainer.lab.reports.contents import Report, report_on
from evenkeel.trainer.lab.reports.curves import by_rollout
from evenkeel.trainer.lab.reports.held_out import read_answers
from evenkeel.trainer.lab.reports.page import write_report
from evenkeel.trainer.lab.reports.run_files import read_runs
from evenkeel.trainer.lab.reports.tables import NOTHING, number
from evenkeel.trainer.lab.statistics.intervals import paired_difference
from tests.trainer.lab.reports.recorded_sweep import record_run, record_sweep


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps") / "sweep"
    return record_sweep(folder, effects={"ar": 1.5, "lopti": -1.5}, unfinished=["ar-s4"])


@pytest.fixture(scope="module")
def report(sweep: Path) -> Report:
    return report_on(sweep)


def test_verdicts_follow_from_what_was_planted(report: Report):
    assert report.headline == "Against grpo, better: ar; worse: lopti."
    assert [contrast.difference.num_seeds for contrast in report.main.contrasts] == [4, 5]
    assert "Left out, not finished: ar-s4." in report.notes


def test_differences_are_those_of_the_files(sweep: Path, report: Report):
    """By hand from the parquet files: mean over the seeds and over the items that were scored."""
    runs = read_runs(sweep).by_variant
    lopti, grpo = (final_accuracies(list(runs[name].values()), "test") for name in ("lopti", "grpo"))
    assert grpo.shape == (5, 60)
    assert np.isnan(grpo[:, 7]).all()  # the item that nobody could judge
    contrast = report.main.contrast_of("lopti")
    assert contrast.difference == paired_difference(lopti, grpo)
    assert contrast.difference.num_items == 59
    assert contrast.difference.value == pytest.approx(np.nanmean(lopti) - np.nanmean(grpo))


def test_passes_over_one_rollout_batch_are_averaged():
    """Two optimizer steps a batch, each on other tokens: (1 + 3) / 2 and (5 + 9) / 2."""
    assert by_rollout({0.5: 1.0, 1.0: 3.0, 1.5: 5.0, 2.0: 9.0}) == {1: 2.0, 2: 7.0}


def test_the_audit_counts_what_the_files_hold(sweep: Path, report: Report):
    audit = report.audits["grpo"]
    assert audit.completions == 300
    assert audit.frac_unscored == pytest.approx(1 / 60)
    assert audit.reasons[0][0] == "it equals <another> number"


def test_a_directory_without_runs_is_refused(tmp_path: Path):
    with pytest.raises(Refusal, match=r"metrics.jsonl, nor that of a sweep, with sweep.json"):
        report_on(tmp_path)
    names = [f"{variant}-s0" for variant in ("grpo", "ar", "lopti")]
    with pytest.raises(Refusal, match=r"No cell of the sweep in .* has finished"):
        report_on(record_sweep(tmp_path / "sweep", seeds=[0], unfinished=names))
    with pytest.raises(Refusal, match=r"report\.md cannot be the page"):
        write_report(tmp_path / "sweep", tmp_path / "report.md")


def test_what_a_run_has_lost_is_named_and_not_taken_from_an_earlier_evaluation(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", seeds=(0,))
    (sweep / "lopti-s0/run/metrics.jsonl").unlink()
    (sweep / "ar-s0/run/evaluations/test/step-000020.parquet").unlink()
    report = report_on(sweep)
    assert report.main.left_out == ["lopti with seed 0"]
    curve = read_runs(sweep).by_variant["ar"][0].held_out()["test"]
    assert report.main.contrast_of("ar").mean.value == curve[20] != curve[10]


def test_what_should_have_been_equal_and_was_not_is_said(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", seeds=(0,))
    log = sweep / "ar-s0/run/metrics.jsonl"
    log.write_text("\n".join(line for line in log.read_text().splitlines() if json.loads(line)["step"] < 20))
    manifest = sweep / "lopti-s0/run/manifest.json"
    manifest.write_text(manifest.read_text().replace("20835693d71ee29c", "other rows"))
    manifest = sweep / "ar-s0/run/manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "choices": {"compact": True, "planned": True}}))
    notes = " ".join(report_on(sweep).notes)
    assert "grpo-s0, lopti-s0 without compact." in notes
    assert "last evaluated after 10, 20 rollout batches" in notes
    assert "different held-out rows" in notes
    assert "different held-out rows" not in " ".join(report_on(sweep / "ar-s0/run").notes)


@pytest.mark.filterwarnings("error")
def test_runs_scored_on_other_items_are_refused_in_words(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", seeds=(0, 1))
    for half, cell in enumerate(("ar-s0", "ar-s1")):
        file = sweep / cell / "run/evaluations/test/step-000020.parquet"
        rows = [row if row["item"] % 2 == half else {**row, "correct": None} for row in _rows(file)]
        parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    with pytest.raises(Refusal, match=r"cannot be compared: 2 seeds × 60 items hold no item"):
        write_report(sweep)


def test_without_common_seeds_variants_are_not_compared(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", unfinished=["grpo-s3", "grpo-s4", "ar-s0", "ar-s1", "ar-s2"])
    report = report_on(sweep)
    assert report.main.contrast_of("ar") is None
    assert report.main.contrast_of("lopti").difference.num_seeds == 3
    assert any("ar and its baseline grpo" in note for note in report.notes)


def test_two_seeds_have_their_two_values_where_an_interval_would_say_nothing(tmp_path: Path):
    sweep = record_sweep(tmp_path / "sweep", seeds=(0, 1))
    report, runs = report_on(sweep), read_runs(sweep).by_variant
    ours, theirs = (np.nanmean(final_accuracies(list(runs[name].values()), "test"), 1) for name in ("ar", "grpo"))
    of_ar = next(row for row in report.tables["verdicts"].rows if row[0].text == "ar")
    assert (of_ar[3].text, report.tables["verdicts"].headings[3].note) == (NOTHING, "of 0")  # nor a test
    for cell, values in ((of_ar[1], ours), (of_ar[2], ours - theirs)):
        assert cell.note == "two seeds: " + ", ".join(number(value) for value in sorted(values))


def test_a_run_rose_where_the_interval_over_its_rows_says_so(tmp_path: Path):
    """The change of each row that was scored, by a paired t test."""
    run = record_run(tmp_path / "run")
    before, after = (_rows(run / f"evaluations/test/step-0000{step}.parquet") for step in ("00", "20"))
    pairs = [(new["correct"], old["correct"]) for new, old in zip(after, before, strict=True) if new["item"] != 7]
    reference = stats.ttest_rel(*np.array(pairs, float).T).confidence_interval()
    change = accuracy_change(read_runs(run).all[0], "test")
    assert (change.low, change.high) == pytest.approx(tuple(reference))
    assert " rose" in report_on(run).headline
    scored = [row for row in after if row["item"] != 7]
    for step in ("00", "20"):  # the same answers twice
        parquet.write_table(pyarrow.Table.from_pylist(scored), run / f"evaluations/test/step-0000{step}.parquet")
    read_answers.cache_clear()
    report = report_on(run)
    assert " rose" not in report.headline
    *others, longest = (group.samples[0][2] for group in report.samples)
    assert longest["num_tokens"] == max(row["num_tokens"] for row in scored if row not in others)


def test_the_number_of_samples_may_change_on_the_way(tmp_path: Path):
    """Continued with evaluation.samples=8 after 4: one curve of both; greedy answers do not mix with them."""
    run = record_run(tmp_path / "run", per_item=False)
    lines = [
        {"step": 0, "eval/hard/avg@4": 0.1, "eval/hard/greedy": 0.9},
        {"step": 5, "eval/hard/avg@8": 0.3, "eval/hard/greedy": 0.9},
        {"step": 10, "eval/hard/greedy": 0.9},
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_runs(run).all[0].held_out() == {"hard": {0: 0.1, 5: 0.3}}


def test_shares_of_several_samples_are_not_yes_or_no_items(tmp_path: Path):
    """One run, 10 items, 4 samples each, two or three of them right: as certain as 40 completions, not as 10 items."""
    run = record_run(tmp_path / "run", per_item=False)
    rows = [{"item": n // 4, "sample": n % 4, "greedy": False, "correct": n % 4 < 2 + n // 4 % 2} for n in range(40)]
    (run / "evaluations/test").mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), run / "evaluations/test/step-000020.parquet")
    final = report_on(run).main.variants[0].final
    reference = stats.binomtest(25, 40).proportion_ci(method="wilson")
    assert (final.value, final.low, final.high) == pytest.approx((0.625, reference.low, reference.high))
    assert final.num_items == 10


def _rows(file: Path) -> list[dict[str, Any]]:
    return parquet.read_table(file).to_pylist()

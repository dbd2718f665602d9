"""Coverage: the share of held-out items that a policy solves at least once in k samples, against the baseline's.

A policy may gain accuracy on what it solves anyway and lose the rest. That shows here first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainer import statistics
from trainer.comparison.reports.columns import difference, estimate
from trainer.comparison.reports.comparison import judged_runs
from trainer.comparison.reports.held_out import Answers, Floats
from trainer.comparison.reports.run_files import RecordedRun, RecordedRuns
from trainer.comparison.reports.tables import EMPTY, Column, Table, TableCell, table_of
from trainer.evaluation.metrics import pass_at_k
from trainer.statistics import Estimate


@dataclass(frozen=True)
class CoverageRow:
    """One variant; ``difference`` is paired by seed and item, ``None`` of a baseline and where no seed pairs."""

    variant: str
    coverage: Estimate
    difference: Estimate | None


COVERAGE: list[Column[CoverageRow]] = [
    Column("variant", lambda row: TableCell(row.variant)),
    Column("coverage", lambda row: estimate(row.coverage), "mean, 95 %"),
    Column("difference", lambda row: difference(row.difference), "paired, 95 %"),
    Column(
        "in words",
        lambda row: TableCell(statistics.verdict(row.difference).sentence) if row.difference else EMPTY,
        is_prose=True,
    ),
]


def coverage_table(runs: RecordedRuns, dataset: str) -> Table | None:
    """One row a variant; ``None`` without per-item answers, or with fewer than two judged samples of each item."""
    judged = judged_runs(runs, dataset)
    answers = [found for run in judged.all if (found := run.final_answers(dataset)) is not None]
    if not answers or len(answers) < len(judged.all):
        return None
    items = sorted(set.intersection(*(set(found.verdicts_by_item) for found in answers)))
    k = min((len(found.verdicts_by_item[item]) for found in answers for item in items), default=0)
    by_variant = {name: _coverages(by_seed, dataset, items, k) for name, by_seed in judged.by_variant.items()}
    every = np.concatenate([*by_variant.values()])
    if k < 2 or np.isnan(every).any(0).all():
        return None
    rows = [_row(name, judged, by_variant) for name in by_variant]
    caption = (
        f"Share of items of {dataset} that are solved at least once in {k} samples (pass@{k}), after the last step. A "
        "second outcome: settings were not chosen by it, and it is not adjusted for being one of two."
    )
    return table_of(f"Coverage: pass@{k}", COVERAGE, rows, caption)


def _coverages(by_seed: Mapping[int, RecordedRun], dataset: str, items: Sequence[int], k: int) -> Floats:
    """pass@k, (seeds, items), NaN where fewer than k completions were judged."""
    found = [run.final_answers(dataset) for run in by_seed.values()]
    return np.array([[_of_item(answers, item, k) for item in items] for answers in found if answers is not None])


def _of_item(answers: Answers, item: int, k: int) -> float:
    return float(pass_at_k(np.array([answers.verdicts_by_item[item]]), k)[0])


def _row(variant: str, runs: RecordedRuns, by_variant: Mapping[str, Floats]) -> CoverageRow:
    ours, baseline = by_variant[variant], runs.baseline.get(variant, variant)
    return CoverageRow(variant, statistics.mean_estimate(ours), _difference(variant, baseline, runs, by_variant))


def _difference(variant: str, baseline: str, runs: RecordedRuns, by_variant: Mapping[str, Floats]) -> Estimate | None:
    if baseline == variant or baseline not in by_variant:
        return None
    our_seeds, their_seeds = [*runs.by_variant[variant]], [*runs.by_variant[baseline]]
    common = [seed for seed in our_seeds if seed in their_seeds]
    if not common:
        return None
    return statistics.paired_difference(
        by_variant[variant][[our_seeds.index(seed) for seed in common]],
        by_variant[baseline][[their_seeds.index(seed) for seed in common]],
    )

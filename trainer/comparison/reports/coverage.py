"""Coverage: the share of held-out items that a policy solves at least once in k samples, against the baseline's.

A policy may gain accuracy on what it solves anyway and lose the rest. That shows here first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenkeel.trainer import statistics
from evenkeel.trainer.comparison.reports.comparison import judged_runs
from evenkeel.trainer.comparison.reports.held_out import Answers, Floats
from evenkeel.trainer.comparison.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.comparison.reports.tables import EMPTY, Column, Table, TableCell, difference, estimate, table_of
from evenkeel.trainer.evaluation.metrics import pass_at_k
from evenkeel.trainer.statistics import Estimate


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
        "verdict",
        lambda row: TableCell(statistics.verdict(row.difference).sentence) if row.difference else EMPTY,
        is_prose=True,
    ),
]


def coverage_table(runs: RecordedRuns, dataset: str) -> Table | None:
    """One row a variant, with k the number of samples that most runs have.

    The caption names the runs that are left out: those without per-item answers, and those with fewer samples. ``None``
    where k < 2, no run is left, or no item has k judged samples in all that are.
    """
    judged, k, left_out = _covered(judged_runs(runs, dataset), dataset)
    answers = [found for run in judged.all if (found := run.final_answers(dataset)) is not None]
    if k < 2 or not answers:
        return None
    items = sorted(set.intersection(*(set(found.verdicts_by_item) for found in answers)))
    by_variant = {name: _coverages(by_seed, dataset, items, k) for name, by_seed in judged.by_variant.items()}
    every = np.concatenate([*by_variant.values()])
    if np.isnan(every).any(0).all():
        return None
    rows = [_row(name, judged, by_variant) for name in by_variant]
    caption = (
        f"Share of items of {dataset} that are solved at least once in {k} samples (pass@{k}), after the last step. A "
        "second outcome: settings were not chosen by it, and its verdicts are not adjusted for two outcomes."
    )
    if left_out:
        caption += f" Left out: {', '.join(left_out)}."
    return table_of(f"Coverage: pass@{k}", COVERAGE, rows, caption)


def _covered(judged: RecordedRuns, dataset: str) -> tuple[RecordedRuns, int, list[str]]:
    """The runs with k samples and their variants, k, and the other runs each with the reason."""
    answers = {(run.variant, run.seed): run.final_answers(dataset) for run in judged.all}
    samples = {cell: _samples(found) for cell, found in answers.items() if found is not None}
    k = _most_common(samples.values())
    reasons = {
        cell: "no results by item" if found is None else f"fewer than {k} judged samples an item"
        for cell, found in answers.items()
        if found is None or samples[cell] < k or max(found.judged_by_item.values()) < k
    }
    by_variant = {
        variant: kept
        for variant, by_seed in judged.by_variant.items()
        if (kept := {seed: run for seed, run in by_seed.items() if (variant, seed) not in reasons})
    }
    left_out = [f"{variant} with seed {seed} ({reason})" for (variant, seed), reason in reasons.items()]
    return replace(judged, by_variant=by_variant), k, left_out


def _samples(answers: Answers) -> int:
    """Of most items: one that lost a completion does not speak for the others."""
    return _most_common(map(len, answers.verdicts_by_item.values()))


def _most_common(counts: Iterable[int]) -> int:
    """The larger of two that are equally common; 0 of none."""
    often = Counter(counts)
    return max(often, key=lambda count: (often[count], count), default=0)


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

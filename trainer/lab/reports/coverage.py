"""Coverage: the share of held-out items that a policy solves at least once in k samples, against the baseline's.

A policy may gain accuracy on what it solves anyway and lose the rest. That shows here first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenkeel.trainer.evaluation.metrics import pass_at_k
from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.comparison import judged_runs
from evenkeel.trainer.lab.reports.held_out import Answers, Floats
from evenkeel.trainer.lab.reports.run_files import RecordedRuns
from evenkeel.trainer.lab.reports.tables import EMPTY, Column, Table, TableCell, difference, estimate, table_of
from evenkeel.trainer.lab.statistics import Estimate


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
    covered, k, left_out = _covered(judged_runs(runs, dataset), dataset)
    answers = [found for by_seed in covered.values() for found in by_seed.values()]
    if k < 2 or not answers:
        return None
    items = sorted(set.intersection(*(set(found.verdicts_by_item) for found in answers)))
    coverages = {
        name: {seed: _coverage(found, items, k) for seed, found in by_seed.items()} for name, by_seed in covered.items()
    }
    if np.isnan([each for by_seed in coverages.values() for each in by_seed.values()]).any(0).all():
        return None
    rows = [
        CoverageRow(
            name,
            statistics.mean_estimate([*by_seed.values()]),
            _difference(by_seed, coverages.get(runs.baseline_of(name) or "", {})),
        )
        for name, by_seed in coverages.items()
    ]
    caption = (
        f"Share of items of {dataset} that are solved at least once in {k} samples (pass@{k}), after the last step. A "
        "second outcome: settings were not chosen by it, and its verdicts are not adjusted for two outcomes."
    )
    if left_out:
        caption += f" Left out: {', '.join(left_out)}."
    return table_of(f"Coverage: pass@{k}", COVERAGE, rows, caption)


def _covered(judged: RecordedRuns, dataset: str) -> tuple[dict[str, dict[int, Answers]], int, list[str]]:
    """Variant → seed → the answers of the runs with k samples, k, and the other runs each with the reason."""
    answers = {(run.variant, run.seed): run.final_answers(dataset) for run in judged.all}
    samples = {cell: _samples(found) for cell, found in answers.items() if found is not None}
    k = _most_common(samples.values())
    covered: dict[str, dict[int, Answers]] = {}
    left_out = []
    for (variant, seed), found in answers.items():
        if found is None:
            left_out.append(f"{variant} with seed {seed} (no results by item)")
        elif samples[variant, seed] < k or max(found.judged_by_item.values()) < k:
            left_out.append(f"{variant} with seed {seed} (fewer than {k} judged samples an item)")
        else:
            covered.setdefault(variant, {})[seed] = found
    return covered, k, left_out


def _samples(answers: Answers) -> int:
    """Of most items: one that lost a completion does not speak for the others."""
    return _most_common(map(len, answers.verdicts_by_item.values()))


def _most_common(counts: Iterable[int]) -> int:
    """The larger of two that are equally common; 0 of none."""
    often = Counter(counts)
    return max(often, key=lambda count: (often[count], count), default=0)


def _coverage(answers: Answers, items: Sequence[int], k: int) -> Floats:
    """pass@k, (items,), NaN where fewer than k completions were judged."""
    return np.array([pass_at_k(np.array([answers.verdicts_by_item[item]]), k)[0] for item in items])


def _difference(ours: Mapping[int, Floats], theirs: Mapping[int, Floats]) -> Estimate | None:
    common = [seed for seed in ours if seed in theirs]
    if not common:
        return None
    return statistics.paired_difference([ours[seed] for seed in common], [theirs[seed] for seed in common])

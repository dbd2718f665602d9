"""Coverage: the share of held-out items that a policy solves at least once in k samples, against the baseline's.

A policy may gain accuracy on items that it already solves and lose others: coverage falls first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from evenkeel.trainer.evaluation.metrics import pass_at_k
from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.reports.comparison import scored_runs
from evenkeel.trainer.lab.reports.held_out import Answers, Floats
from evenkeel.trainer.lab.reports.run_files import RecordedRuns
from evenkeel.trainer.lab.reports.tables import EMPTY, Cells, Heading, Table, TableCell, difference, estimate, table_of
from evenkeel.trainer.lab.statistics.intervals import mean_estimate, paired_difference
from evenkeel.trainer.lab.statistics.verdict import verdict


def coverage_table(runs: RecordedRuns, dataset: str) -> Table | None:
    """One row a variant, with k the smallest `_samples` of a run.

    ``None`` where k < 2, a run has no per-item answers, or no item has k scored samples in all runs.
    """
    answers = {
        name: {seed: run.final_answers(dataset) for seed, run in by_seed.items()}
        for name, by_seed in scored_runs(runs, dataset).by_variant.items()
    }
    every = [found for by_seed in answers.values() for found in by_seed.values() if found is not None]
    k = min((_samples(found) for found in every), default=0)
    if k < 2 or len(every) < sum(map(len, answers.values())):
        return None
    items = sorted(set.intersection(*(set(found.verdicts_by_item) for found in every)))
    coverages = {
        name: {seed: _coverage(found, items, k) for seed, found in by_seed.items() if found}
        for name, by_seed in answers.items()
    }
    if np.isnan([each for by_seed in coverages.values() for each in by_seed.values()]).any(0).all():
        return None
    rows: list[Cells] = []
    for name, by_seed in coverages.items():
        found = _difference(by_seed, coverages.get(runs.baseline_of(name) or "", {}))
        said = TableCell(verdict(found).sentence) if found else EMPTY
        rows.append([name, estimate(mean_estimate([*by_seed.values()])), difference(found), said])
    headings = (
        "variant",
        Heading("coverage", "mean, 95 %"),
        Heading("difference", "paired, 95 %"),
        Heading("verdict", is_prose=True),
    )
    caption = f"Share of items of {dataset} solved at least once in {k} samples; verdicts are not adjusted for it."
    return table_of(f"Coverage: pass@{k}", headings, rows, caption)


def _samples(answers: Answers) -> int:
    """The most common number of samples of an item, the larger of equals: a lost completion does not lower it."""
    often = Counter(map(len, answers.verdicts_by_item.values()))
    return max(often, key=lambda count: (often[count], count), default=0)


def _coverage(answers: Answers, items: Sequence[int], k: int) -> Floats:
    """pass@k, (items,), NaN where fewer than k completions were scored."""
    return np.array([pass_at_k(np.array([answers.verdicts_by_item[item]]), k)[0] for item in items])


def _difference(ours: Mapping[int, Floats], theirs: Mapping[int, Floats]) -> Estimate | None:
    common = [seed for seed in ours if seed in theirs]
    if not common:
        return None
    return paired_difference([ours[seed] for seed in common], [theirs[seed] for seed in common])

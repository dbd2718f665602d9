"""Read from a few finished cells how much the differences of a sweep will vary.

A pilot is any directory of cells: those of the sweep itself that are finished, or an earlier sweep's. Variances come
from paired differences where a variant and its baseline share three seeds or more, else from pairs of runs
taken as unpaired, which overestimates the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.comparison import datasets_of, judged_runs
from evenkeel.trainer.lab.reports.held_out import Answers, Floats, accuracy_table, read_answers
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns, read_runs
from evenkeel.trainer.lab.statistics import (
    DifferenceComponents,
    StatisticsError,
    paired_components,
    unpaired_components,
)

FEWEST_PAIRS = 3
"""With fewer pairs a paired variance has one degree of freedom, and unpaired runs tell more."""


@dataclass(frozen=True)
class Pilot:
    """A pilot's numbers on its first held-out set, at the last evaluation that all of its runs have.

    Attributes:
        rollouts: rollout batches before that evaluation.
        paired: whether variances are those of paired differences.
    """

    directory: Path
    cells: list[str]
    dataset: str
    num_items: int
    rollouts: float
    paired: bool
    components: DifferenceComponents


def read_pilot(directory: Path, what_to_run: str) -> Pilot:
    """The pilot in a directory of cells.

    Args:
        what_to_run: end of the error messages: commands that make a pilot.

    Raises:
        Refusal: no finished cell, no two seeds of one variant, or no results by item.
    """
    try:
        runs = read_runs(directory)
    except Refusal as refusal:
        raise Refusal(f"There is no pilot in {directory}: {refusal} {what_to_run}") from refusal
    dataset = next(iter(datasets_of(runs)), None)
    if dataset is None:
        raise Refusal(f"The cells in {directory} have no scored answer on any held-out set. {what_to_run}")
    scored = judged_runs(runs, dataset)
    rollouts, rows = _last_evaluation(scored, dataset)
    if not rows:
        raise Refusal(
            f"The cells in {directory} kept no results by item (evaluations/{dataset}/step-*.parquet) of a common "
            f"step, and the variance between items cannot be estimated without them. {what_to_run}"
        )
    paired, components = _components(scored, rows, what_to_run)
    accuracies, _ = next(iter(rows.values()))
    cells = [f"{run.variant}-s{run.seed}" for run in runs.all]
    return Pilot(directory, cells, dataset, accuracies.shape[1], rollouts, paired, components)


Rows = dict[str, tuple[Floats, list[int]]]
"""Variant → accuracies of its runs (S, I) on the items that were scored in all runs, and their seeds."""


def _last_evaluation(runs: RecordedRuns, dataset: str) -> tuple[float, Rows]:
    """The last number of rollout batches at which all runs kept their answers, and those; without rows of none."""
    by_run = [
        {step / run.steps_per_rollout: path for step, path in run.answers.get(dataset, {}).items()} for run in runs.all
    ]
    for rollouts in sorted(set.intersection(*map(set, by_run)), reverse=True):
        if rollouts > 0 and (rows := _rows(runs.all, [read_answers(paths[rollouts]) for paths in by_run])):
            return rollouts, rows
    return 0.0, {}


def _rows(runs: Sequence[RecordedRun], answers: list[Answers | None]) -> Rows:
    table, _ = accuracy_table(answers)
    if table is None:
        return {}
    scored = ~np.isnan(table).any(0)
    if scored.sum() < 2:
        return {}
    by_variant: dict[str, list[int]] = {}
    for position, run in enumerate(runs):
        by_variant.setdefault(run.variant, []).append(position)
    return {
        variant: (table[positions][:, scored], [runs[position].seed for position in positions])
        for variant, positions in by_variant.items()
    }


def _components(runs: RecordedRuns, rows: Rows, what_to_run: str) -> tuple[bool, DifferenceComponents]:
    """Whether variances are of paired differences, and the variances."""
    pairs = []
    for variant, by_seed in runs.by_variant.items():
        baseline = runs.baseline_of(variant)
        if baseline in runs.by_variant and (common := sorted(set(by_seed) & set(runs.by_variant[baseline]))):
            pairs.append((_of_seeds(rows[variant], common), _of_seeds(rows[baseline], common)))
    paired = any(len(ours) >= FEWEST_PAIRS for ours, _ in pairs)
    try:
        if paired:
            return True, paired_components([both for both in pairs if len(both[0]) > 1])
        return False, unpaired_components([table for table, _ in rows.values()], pairs)
    except StatisticsError as refusal:
        raise Refusal(f"{refusal} {what_to_run}") from refusal


def _of_seeds(runs: tuple[Floats, list[int]], seeds: Sequence[int]) -> Floats:
    accuracies, known = runs
    return accuracies[[known.index(seed) for seed in seeds]]

"""Read from a few finished cells how much the differences of a sweep will vary.

A pilot is any directory of cells: those of the sweep itself that are finished, or an earlier sweep's. Variances come
from paired differences where a variant and its baseline share three seeds or more, else from pairs of runs
taken as unpaired, which overestimates the noise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.comparison import datasets_of, scored_runs
from evenkeel.trainer.lab.reports.outcomes import ACCURACY, Outcome
from evenkeel.trainer.lab.reports.run_files import RecordedRuns, read_runs
from evenkeel.trainer.lab.statistics.components import DifferenceComponents, paired_components, unpaired_components
from evenkeel.trainer.lab.statistics.intervals import Floats, StatisticsError

FEWEST_PAIRS = 3
"""With fewer pairs a paired variance has one degree of freedom, and unpaired runs say more."""


@dataclass(frozen=True)
class Pilot:
    """A pilot's numbers on its first held-out set; ``paired``: whether variances are those of paired differences."""

    outcome: Outcome
    directory: Path
    cells: list[str]
    dataset: str
    num_items: int
    paired: bool
    components: DifferenceComponents


def read_pilot(directory: Path, what_to_run: str, outcome: Outcome = ACCURACY) -> Pilot:
    """The pilot in a directory of cells, from the outcome of each.

    Messages of errors end with ``what_to_run``: commands that make a pilot.

    Raises:
        Refusal: no finished cell, no two seeds of one variant, or no results by item.
    """
    try:
        runs = read_runs(directory)
    except Refusal as refusal:
        raise Refusal(f"There is no pilot in {directory}: {refusal} {what_to_run}") from refusal
    dataset = next(iter(datasets_of(runs)), "")
    runs = scored_runs(runs, dataset)
    try:
        values = outcome.values(runs.all, dataset).reshape(len(runs.all), -1) if dataset else np.empty((0, 0))
        values = values[:, ~np.isnan(values).any(0)]
        if values.shape[1] < 1 + outcome.by_item:
            raise Refusal(f"The cells in {directory} kept no scored answers on common held-out items. {what_to_run}")
        names = [(run.variant, run.seed) for run in runs.all]
        rows = dict(zip(names, values, strict=True))
        paired, components = _components(runs, rows)
    except StatisticsError as refusal:
        raise Refusal(f"{refusal} {what_to_run}") from refusal
    cells = [f"{run.variant}-s{run.seed}" for run in runs.all]
    return Pilot(outcome, directory, cells, dataset, values.shape[1], paired, components)


def _components(runs: RecordedRuns, rows: Mapping[tuple[str, int], Floats]) -> tuple[bool, DifferenceComponents]:
    """``(paired, variances)`` as in `Pilot`; ``rows``: (variant, seed) → values (I,)."""

    def table(variant: str, seeds: Iterable[int]) -> Floats:
        return np.array([rows[variant, seed] for seed in seeds])

    pairs = []
    for variant, by_seed in runs.by_variant.items():
        baseline = runs.baseline_of(variant)
        if baseline in runs.by_variant and (common := sorted(set(by_seed) & set(runs.by_variant[baseline]))):
            pairs.append((table(variant, common), table(baseline, common)))
    if any(len(ours) >= FEWEST_PAIRS for ours, _ in pairs):
        return True, paired_components([both for both in pairs if len(both[0]) > 1])
    groups = [table(variant, by_seed) for variant, by_seed in runs.by_variant.items()]
    return False, unpaired_components(groups, pairs)

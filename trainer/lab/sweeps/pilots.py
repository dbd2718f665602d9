"""What a few finished cells tell about a sweep before it runs: variances of its differences, the cost of a cell.

A pilot is any directory of cells: those of the sweep itself that are finished, or an earlier sweep's. Variances come
from paired differences where a variant and its baseline share three seeds or more, else from pairs of runs
taken as unpaired, which overestimates the noise; after every rollout batch at which all runs were evaluated.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.accuracies import mean_accuracies
from evenkeel.trainer.lab.reports.comparison import datasets_of, judged_runs
from evenkeel.trainer.lab.reports.held_out import Answers, accuracy_table, read_answers
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns, ReportError, read_json, read_runs
from evenkeel.trainer.lab.statistics import (
    DifferenceComponents,
    Evaluated,
    StatisticsError,
    paired_components,
    unpaired_components,
)

FEWEST_PAIRS = 3
"""With fewer pairs a paired variance has one degree of freedom, and unpaired runs tell more."""


@dataclass(frozen=True)
class PilotPoint:
    """The numbers of a pilot after so many rollout batches.

    Attributes:
        accuracy: mean of the baseline's runs, or of all where none is one.
        differences: variant → mean difference from its baseline, where seeds are in common.
        hours: of one cell up to here, its evaluations included; mean over the cells whose time is known, NaN of none.
        evaluation_hours: of those.
    """

    rollouts: float
    components: DifferenceComponents
    accuracy: float
    differences: Mapping[str, float]
    hours: float
    evaluation_hours: float


@dataclass(frozen=True)
class Pilot:
    """A pilot's numbers on its first held-out set, ``points`` by rollout batches; the last one is the verdict's.

    Attributes:
        paired: whether variances are those of paired differences.
    """

    directory: Path
    cells: list[str]
    dataset: str
    num_items: int
    samples: int
    paired: bool
    points: list[PilotPoint]


def read_pilot(directory: Path, what_to_run: str) -> Pilot:
    """The pilot in a directory of cells.

    Args:
        what_to_run: end of the error messages: commands that make a pilot.

    Raises:
        Refusal: no finished cell, no two seeds of one variant, or no results by item.
    """
    try:
        runs = read_runs(directory)
    except ReportError as refusal:
        raise Refusal(f"There is no pilot in {directory}: no cell is finished. {what_to_run}") from refusal
    dataset = next(iter(datasets_of(runs)), None)
    if dataset is None:
        raise Refusal(f"The cells in {directory} have no judged answer on any held-out set. {what_to_run}")
    judged = judged_runs(runs, dataset)
    tables = _tables(judged, dataset)
    if not tables:
        raise Refusal(
            f"The cells in {directory} kept no results by item (evaluations/{dataset}/step-*.parquet) of a common "
            f"step, and the variance between items cannot be estimated without them. {what_to_run}"
        )
    pairs = _pairs(judged)
    paired = any(len(seeds) >= FEWEST_PAIRS for _, _, seeds in pairs)
    points = [_point(judged, at, found, pairs, paired, what_to_run) for at, found in sorted(tables.items())]
    last = next(iter(tables[max(tables)].values()))
    cells = [f"{run.variant}-s{run.seed}" for run in runs.all]
    return Pilot(directory, cells, dataset, last[0].accuracies.shape[1], last[0].samples, paired, points)


Rows = dict[str, tuple[Evaluated, list[int]]]
"""Variant → its runs on the items that all runs were judged on, and their seeds."""


def _tables(runs: RecordedRuns, dataset: str) -> dict[float, Rows]:
    """Rollout batches at which all runs kept their answers → those answers."""
    by_run = [
        {step / run.steps_per_rollout: path for step, path in run.answers.get(dataset, {}).items()} for run in runs.all
    ]
    found = {}
    for rollouts in sorted(set.intersection(*map(set, by_run))):
        answers = [read_answers(paths[rollouts]) for paths in by_run]
        if (rows := _rows(runs.all, answers)) is not None and rollouts > 0:
            found[rollouts] = rows
    return found


def _rows(runs: Sequence[RecordedRun], answers: list[Answers | None]) -> Rows | None:
    table, items = accuracy_table(answers)
    if table is None:
        return None
    judged = ~np.isnan(table).any(0)
    if judged.sum() < 2:
        return None
    counts = [found.judged_by_item[items[column]] for found in answers if found for column in np.flatnonzero(judged)]
    samples = int(np.median(counts))
    by_variant: dict[str, list[int]] = {}
    for position, run in enumerate(runs):
        by_variant.setdefault(run.variant, []).append(position)
    return {
        variant: (Evaluated(table[positions][:, judged], samples), [runs[position].seed for position in positions])
        for variant, positions in by_variant.items()
    }


def _pairs(runs: RecordedRuns) -> list[tuple[str, str, list[int]]]:
    """Variant, baseline and the seeds that both have."""
    pairs = []
    for variant, by_seed in runs.by_variant.items():
        baseline = runs.baseline_of(variant)
        if baseline in runs.by_variant and (common := sorted(set(by_seed) & set(runs.by_variant[baseline]))):
            pairs.append((variant, baseline, common))
    return pairs


def _point(
    runs: RecordedRuns,
    rollouts: float,
    rows: Rows,
    pairs: Sequence[tuple[str, str, list[int]]],
    paired: bool,
    what_to_run: str,
) -> PilotPoint:
    def chosen(variant: str, seeds: Sequence[int]) -> Evaluated:
        table, known = rows[variant]
        return Evaluated(table.accuracies[[known.index(seed) for seed in seeds]], table.samples)

    matched = [(chosen(variant, seeds), chosen(baseline, seeds)) for variant, baseline, seeds in pairs]
    try:
        if paired:
            components = paired_components([both for both in matched if len(both[0].accuracies) > 1])
        else:
            components = unpaired_components([table for table, _ in rows.values()], matched)
    except StatisticsError as refusal:
        raise Refusal(f"{refusal} {what_to_run}") from refusal
    baselines = [variant for variant in rows if runs.baseline_of(variant) is None] or list(rows)
    accuracy = float(np.mean([mean_accuracies(rows[variant][0].accuracies).mean() for variant in baselines]))
    differences = {
        variant: float((ours.accuracies - theirs.accuracies).mean())
        for (variant, _, _), (ours, theirs) in zip(pairs, matched, strict=True)
    }
    known = [hours for run in runs.all if (hours := cell_hours(run, rollouts)) is not None]
    whole, evaluations = np.mean(known, axis=0).tolist() if known else (math.nan, math.nan)
    return PilotPoint(rollouts, components, accuracy, differences, whole, evaluations)


def cell_hours(run: RecordedRun, rollouts: float) -> tuple[float, float] | None:
    """Hours of a run up to a number of rollout batches, all its attempts together, and its evaluations' among them.

    Training is taken to cost the same for every rollout batch; the time of an evaluation is in the file next to its
    answers. ``None`` where the time of an attempt is unknown, as in older versions after a kill, or 0 s.
    """
    device_seconds, steps = run.device_seconds, run.optimizer_steps
    if not device_seconds or not steps:
        return None
    seconds = device_seconds / int(run.manifest.get("world_size") or 1)
    evaluations: dict[float, float] = {}
    for by_step in run.answers.values():
        for step, path in by_step.items():
            taken = float(read_json(path.with_suffix(".json")).get("generation_seconds", 0.0))
            evaluations[step / run.steps_per_rollout] = evaluations.get(step / run.steps_per_rollout, 0.0) + taken
    training = max(0.0, seconds - sum(evaluations.values()))
    done = sum(taken for at, taken in evaluations.items() if at <= rollouts)
    return (training * rollouts / (steps / run.steps_per_rollout) + done) / 3600, done / 3600

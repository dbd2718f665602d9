"""Held-out accuracies of several runs as arrays: at the last evaluation by item, and along the learning curve."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainer import statistics
from trainer.comparison.reports.held_out import accuracy_table
from trainer.comparison.reports.run_files import RecordedRun

Floats = NDArray[np.float64]


def is_judged(run: RecordedRun, dataset: str) -> bool:
    """Whether the run's last evaluation has one judged answer at least."""
    answers = run.final_answers(dataset)
    if answers is None:
        return bool(run.held_out().get(dataset))
    return any(math.isfinite(accuracy) for accuracy in answers.accuracy_by_item.values())


def final_accuracies(runs: Sequence[RecordedRun], dataset: str) -> Floats:
    """Accuracy at the last evaluation: (runs, items) where the per-item results are there, else (runs,)."""
    table, _ = accuracy_table([run.final_answers(dataset) for run in runs])
    return np.array([_last(run.held_out()[dataset]) for run in runs]) if table is None else table


def mean_accuracies(final: Floats) -> Floats:
    """Each run's accuracy, (runs,), over the items that all of them were judged on."""
    return final[:, ~np.isnan(final).any(0)].mean(1) if final.ndim == 2 else final


def curves(runs: Sequence[RecordedRun], dataset: str) -> tuple[Floats, Floats]:
    """Rollout batches (P,) at which all runs were evaluated, and their accuracies (runs, P)."""
    series = [run.held_out()[dataset] for run in runs]
    points = sorted(set.intersection(*map(set, series)))
    return np.array(points), np.array([[one[point] for point in points] for one in series]).reshape(len(runs), -1)


def areas_under_curves(runs: Sequence[RecordedRun], dataset: str) -> Floats | None:
    """Area under each run's curve, (runs,), over the points that all have; ``None`` of fewer than two."""
    points, values = curves(runs, dataset)
    return statistics.area_under_curve(values, points) if len(points) > 1 else None


def _last(series: dict[float, float]) -> float:
    return series[max(series)]

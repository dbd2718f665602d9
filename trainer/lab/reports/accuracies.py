"""Held-out accuracies of several runs as arrays: at the last evaluation, and along the learning curve."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from evenkeel.trainer.evaluation.shares import Estimate, share_estimate
from evenkeel.trainer.lab.reports.held_out import accuracy_table, read_answers
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.statistics.intervals import Floats, mean_estimate


def is_scored(run: RecordedRun, dataset: str) -> bool:
    """Whether the run's last evaluation has a scored answer."""
    answers = run.final_answers(dataset)
    if answers is not None and np.isnan([*answers.accuracy_by_item.values()]).all():
        return False
    return bool(run.held_out().get(dataset))


def final_accuracies(runs: Sequence[RecordedRun], dataset: str) -> Floats:
    """Accuracy at the last evaluation: (runs, items) where all runs kept answers by item, else (runs,)."""
    table = accuracy_table([run.final_answers(dataset) for run in runs])
    if table is not None:
        return table
    curves_of = [run.held_out()[dataset] for run in runs]
    return np.array([curve[max(curve)] for curve in curves_of])


def mean_accuracies(final: Floats) -> Floats:
    """Each run's accuracy, (runs,), over the items that all of them were scored on."""
    return final[:, ~np.isnan(final).any(0)].mean(1) if final.ndim == 2 else final


def accuracy_estimate(values: Floats, completions: int | None = None) -> Estimate:
    """The mean of accuracies (runs,) or (runs, items); the t interval over runs is cut at 0 and 1.

    With ``completions``, the number of scored ones, a single run has Wilson's interval.
    """
    if len(values) == 1 and completions is not None:
        return share_estimate(values[0], completions)
    found = mean_estimate(values)
    if math.isnan(found.low):
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def accuracy_change(run: RecordedRun, dataset: str) -> Estimate | None:
    """A run's accuracy at the end − before training, with the t interval over the rows that were scored in both.

    The interval is NaN where all rows changed alike; ``None`` where the answers of one of the two were not kept.
    """
    before = run.answers.get(dataset, {}).get(0)
    table = accuracy_table([run.final_answers(dataset), read_answers(before) if before else None])
    changes = [] if table is None else [last - first for last, first in table.T if not math.isnan(last - first)]
    if len(changes) < 2:
        return None
    found = replace(mean_estimate(changes), num_seeds=1, num_items=len(changes))
    return found if found.low < found.high else replace(found, low=math.nan, high=math.nan)


def curves(runs: Sequence[RecordedRun], dataset: str) -> tuple[Floats, Floats]:
    """Rollout batches (P,) at which all runs were evaluated, and their accuracies (runs, P)."""
    series = [run.held_out()[dataset] for run in runs]
    points = sorted(set.intersection(*map(set, series)))
    return np.array(points), np.array([[one[point] for point in points] for one in series]).reshape(len(runs), -1)


def areas_under_curves(runs: Sequence[RecordedRun], dataset: str) -> Floats | None:
    """Area under each run's curve, (runs,), over the points that all have; ``None`` with fewer than two."""
    points, values = curves(runs, dataset)
    return area_under_curve(values, points) if len(points) > 1 else None


def area_under_curve(values: ArrayLike, points: ArrayLike) -> Floats:
    """Mean height, (…,), of curves (…, P): trapezoidal area over ``points[-1] − points[0]``, NaN for P < 2."""
    heights, where = np.asarray(values, float), np.asarray(points, float)
    if len(where) < 2:
        return np.full(heights.shape[:-1], np.nan)
    return np.trapezoid(heights, where, axis=-1) / (where[-1] - where[0])

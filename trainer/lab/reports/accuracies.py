"""Held-out accuracies of several runs as arrays: at the last evaluation, along the learning curve, at equal cost.

At equal tokens or device seconds a variant that trains on fewer rollouts, generates more for each, or computes more for
each token, is compared for the same cost.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.held_out import accuracy_table
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.statistics import Estimate

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


def accuracy_estimate(values: Floats, completions: int | None = None) -> Estimate:
    """The mean of accuracies (runs,) or (runs, items); the t interval over runs is cut at 0 and 1.

    Of a single run's items it has Wilson's interval; ``completions`` is from how many these were judged.
    """
    if len(values) == 1 and completions is not None:
        return statistics.share_estimate(values[0], completions)
    found = statistics.mean_estimate(values)
    if math.isnan(found.low):
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


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


@dataclass(frozen=True)
class CostMeasure:
    """A way to count what runs spend.

    Attributes:
        at: of a run, what it had spent when so many rollout batches were done; ``None`` where that was not logged.
        alike: runs whose costs differ by less than this factor are compared as they are.
    """

    at: Callable[[RecordedRun, float], float | None]
    alike: float


TOKENS = CostMeasure(RecordedRun.tokens_at, 1.02)
"""Prompts and completions, all that was generated."""
SECONDS = CostMeasure(RecordedRun.device_seconds_at, 1.1)
"""Of training, times devices. A machine's own noise is some per cent."""


def common_cost(cost: CostMeasure, by_variant: Mapping[str, Sequence[RecordedRun]]) -> float | None:
    """The cost up to which every run was evaluated.

    What a run spent after its last evaluation does not count: its accuracy there was not measured.

    ``None`` where the cost of an evaluation was not logged, all were evaluated up to as much, or a run had spent more
    before its first evaluation on one of its held-out sets.
    """
    every = [run for runs in by_variant.values() for run in runs]
    spent = [_spent(cost, run, dataset) for run in every for dataset in run.held_out()]
    if not spent or not all(spent):
        return None
    first, last = [each[0] for each in spent], [each[-1] for each in spent]
    return None if max(last) <= cost.alike * min(last) or max(first) > min(last) else min(last)


def accuracies_at(cost: CostMeasure, spent: float, runs: Sequence[RecordedRun], dataset: str) -> Floats:
    """Each run's held-out accuracy when it had ``spent`` so much, (runs,): linear between its evaluations.

    NaN where the first evaluation came after more, or the last one after less, or the cost of an evaluation was not
    logged.
    """
    found = []
    for run in runs:
        values = [accuracy for _, accuracy in sorted(run.held_out()[dataset].items())]
        points = _spent(cost, run, dataset)
        found.append(float(np.interp(spent, points, values, left=np.nan, right=np.nan)) if points else np.nan)
    return np.array(found)


def _spent(cost: CostMeasure, run: RecordedRun, dataset: str) -> list[float]:
    """The cost at each evaluation, in their order; none where one of them is not known."""
    logged = [cost.at(run, point) for point in sorted(run.held_out()[dataset])]
    known = [count for count in logged if count is not None]
    return known if len(known) == len(logged) else []

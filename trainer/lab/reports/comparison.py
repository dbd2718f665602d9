"""The comparison of variants over seeds: each one's numbers, and its difference from the baseline with a verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.accuracies import (
    SECONDS,
    TOKENS,
    accuracies_at,
    accuracy_estimate,
    common_cost,
    curves,
    final_accuracies,
    is_judged,
)
from evenkeel.trainer.lab.reports.contrasts import Contrast, contrast_of
from evenkeel.trainer.lab.reports.looks import contrast_at_looks, look_plan, looks_taken
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.lab.statistics import Estimate, Saturation

Floats = NDArray[np.float64]
GAIN_FRACTION = 0.9
"""The default threshold for times: the baseline's start plus this share of its mean gain."""


@dataclass(frozen=True)
class TimeToThreshold:
    """When the runs of a variant reached the threshold.

    Attributes:
        rollouts, tokens: median over the seeds, those that did not reach it counted as later than all others; ``None``
            where that is the median.
        reached, total: number of runs.
    """

    rollouts: float | None
    tokens: float | None
    reached: int
    total: int


@dataclass(frozen=True)
class VariantNumbers:
    """The numbers of one variant over its seeds.

    Attributes:
        start, final: held-out accuracies.
        area: mean height of the learning curve.
        tokens, device_seconds: what a run cost, mean over seeds; ``None`` where some run did not record it.
        at_equal_tokens, at_equal_seconds: accuracy at the `Comparison`'s; ``None`` where there is none.
        saturation: where the mean curve ends, and how soon; ``None`` where the runs were too short to say.
    """

    name: str
    seeds: list[int]
    start: Estimate | None
    final: Estimate
    area: Estimate | None
    time_to_threshold: TimeToThreshold | None
    tokens: float | None
    device_seconds: float | None
    at_equal_tokens: Estimate | None = None
    at_equal_seconds: Estimate | None = None
    saturation: Saturation | None = None


@dataclass(frozen=True)
class Comparison:
    """All numbers on one held-out set.

    Attributes:
        unpaired: notes on variants that have no finished seed in common with their baseline.
        left_out: runs without a single judged answer, by name.
        equal_tokens, equal_seconds: that every run has generated, and has trained for on its devices: variants are
            compared there too; ``None`` if all used as many.
    """

    dataset: str
    threshold: float | None
    threshold_is_given: bool
    variants: list[VariantNumbers]
    contrasts: list[Contrast]
    unpaired: list[str]
    left_out: list[str]
    equal_tokens: float | None = None
    equal_seconds: float | None = None

    def contrast_of(self, variant: str) -> Contrast | None:
        """``None`` for a baseline, and where nothing pairs."""
        return next((contrast for contrast in self.contrasts if contrast.variant == variant), None)


def datasets_of(runs: RecordedRuns) -> list[str]:
    """The held-out sets that every run was evaluated on, and some run judged, in the order of the configuration."""
    found = [set(run.held_out()) for run in runs.all]
    shared = set.intersection(*found) if found else set()
    shared = {name for name in shared if any(is_judged(run, name) for run in runs.all)}
    test = (runs.all[0].raw_config.get("data") or {}).get("test")
    order = list(test) if isinstance(test, dict) else []
    return sorted(shared, key=lambda name: (order.index(name) if name in order else len(order), name))


def comparison(runs: RecordedRuns, dataset: str, threshold: float | None = None) -> Comparison:
    """The numbers of every variant on one held-out set, and of every variant against its baseline."""
    judged = judged_runs(runs, dataset)
    is_given = threshold is not None
    if threshold is None:
        threshold = _threshold(judged, dataset)
    by_variant = {name: list(by_seed.values()) for name, by_seed in judged.by_variant.items()}
    tokens, seconds = (common_cost(cost, by_variant) for cost in (TOKENS, SECONDS))
    numbers = [
        _numbers(name, by_seed, dataset, threshold, tokens, seconds) for name, by_seed in judged.by_variant.items()
    ]
    contrasts, unpaired = [], []
    plan, main = look_plan(runs), next(iter(datasets_of(runs)), dataset)
    by_main = judged if main == dataset else judged_runs(runs, main)
    for variant, by_seed in judged.by_variant.items():
        if (baseline := runs.baseline_of(variant)) is None:
            continue
        if baseline not in judged.by_variant:
            unpaired.append(f"{variant} cannot be compared: no run of its baseline {baseline} is finished and judged.")
            continue
        found = contrast_of(variant, baseline, by_seed, judged.by_variant[baseline], dataset)
        if plan is not None and found.is_paired:
            looks = looks_taken(plan, runs, by_main, main, variant)
            found = contrast_at_looks(plan, looks, variant, baseline, by_seed, judged.by_variant[baseline], dataset)
        contrasts.append(found)
        if not found.is_paired:
            unpaired.append(
                f"{variant} and its baseline {baseline} have no finished seed in common: all their seeds are compared "
                "without pairing, by Welch's t (degrees of freedom of the side with fewer seeds). Such a comparison "
                "finds only larger differences; run both with the same seeds."
            )
    adjusted = statistics.holm_adjusted([each.p_value for each in contrasts])
    contrasts = [replace(each, adjusted_p=float(p)) for each, p in zip(contrasts, adjusted, strict=True)]
    left_out = [f"{run.variant} with seed {run.seed}" for run in runs.all if not is_judged(run, dataset)]
    return Comparison(dataset, threshold, is_given, numbers, contrasts, unpaired, left_out, tokens, seconds)


def judged_runs(runs: RecordedRuns, dataset: str) -> RecordedRuns:
    """Without the runs of whose last evaluation nothing was judged, and the variants that have no others."""
    by_variant = {
        variant: judged
        for variant, by_seed in runs.by_variant.items()
        if (judged := {seed: run for seed, run in by_seed.items() if is_judged(run, dataset)})
    }
    return replace(runs, by_variant=by_variant)


def _threshold(runs: RecordedRuns, dataset: str) -> float | None:
    name = next((variant for variant in runs.by_variant if runs.baseline_of(variant) is None), None)
    if name is None:
        return None
    points, values = curves(list(runs.by_variant[name].values()), dataset)
    if len(points) < 2 or points[0] != 0:
        return None
    start, end = values.mean(0)[[0, -1]]
    return float(start + GAIN_FRACTION * (end - start)) if end > start else None


def _numbers(
    name: str,
    by_seed: dict[int, RecordedRun],
    dataset: str,
    threshold: float | None,
    tokens: float | None,
    seconds: float | None,
) -> VariantNumbers:
    runs = list(by_seed.values())
    answers = runs[0].final_answers(dataset)
    completions = None if answers is None else sum(answers.judged_by_item.values())
    # refuses runs that were judged on no item in common
    final = accuracy_estimate(final_accuracies(runs, dataset), completions)
    points, values = curves(runs, dataset)
    several = len(points) > 1
    return VariantNumbers(
        name,
        sorted(by_seed),
        start=accuracy_estimate(values[:, 0]) if several and points[0] == 0 else None,
        final=final,
        area=accuracy_estimate(statistics.area_under_curve(values, points)) if several else None,
        time_to_threshold=_time_to_threshold(runs, points, values, threshold)
        if several and threshold is not None
        else None,
        tokens=_mean_cost([run.tokens for run in runs]),
        device_seconds=_mean_cost([run.device_seconds for run in runs]),
        at_equal_tokens=None if tokens is None else accuracy_estimate(accuracies_at(TOKENS, tokens, runs, dataset)),
        at_equal_seconds=None if seconds is None else accuracy_estimate(accuracies_at(SECONDS, seconds, runs, dataset)),
        saturation=statistics.saturation(points, values),
    )


def _mean_cost(spent: Sequence[float | None]) -> float | None:
    known = [each for each in spent if each is not None]
    return float(np.mean(known)) if len(known) == len(spent) else None


def _time_to_threshold(
    runs: Sequence[RecordedRun], points: Floats, values: Floats, threshold: float
) -> TimeToThreshold:
    first = statistics.first_reaching(values, points, threshold)
    counts = [run.tokens_at(point) for run, point in zip(runs, first.tolist(), strict=True) if not math.isnan(point)]
    late = [math.inf] * int(np.isnan(first).sum())
    tokens = None if None in counts else _finite_median([*(count for count in counts if count is not None), *late])
    rollouts = _finite_median(np.where(np.isnan(first), math.inf, first).tolist())
    return TimeToThreshold(rollouts, tokens, len(first) - len(late), len(first))


def _finite_median(values: list[float]) -> float | None:
    """The upper of two middle values, so that it is one that a run had."""
    middle = sorted(values)[len(values) // 2]
    return middle if math.isfinite(middle) else None

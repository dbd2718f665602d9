"""The curves of the pictures: metrics over a run, averaged over seeds."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenkeel.trainer.lab.reports.figures import Curve
from evenkeel.trainer.lab.reports.run_files import RecordedRuns
from evenkeel.trainer.lab.statistics.intervals import mean_estimate
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS

DIAGNOSTICS = {
    "entropy": "entropy (nats a token)",
    "kl": "KL to the reference (nats a token)",
    "completions/mean_length": "completion length (tokens)",
    "completions/clipped_ratio": "share cut off at the limit",
    "groups/frac_dead": "share of groups with equal rewards",
    "groups/frac_unscored": "share of groups unscored",
    "grad_norm": "gradient norm",
    "clip_ratio/region_mean": "share of tokens clipped",
    "advantage/mean_abs": "mean |advantage|",
    "grad_share/q1": "update by tokens less probable than 0.25",
    "token_weight/mean": "mean token weight",
    "environment/turns": "turns a completion",
    "environment/frac_failed": "share of rows whose environment failed",
    "tools/failure_frequency": "share of calls that failed",
    "perf/generated_tokens_per_second": "tokens generated a second and device",
    "perf/trained_tokens_per_second": "tokens trained a second and device",
    "perf/mfu": "model FLOPs utilization (%)",
}
"""Metric → its title, in the order of the pictures; those that no run has logged are left out."""


def mean_curve(series: Sequence[dict[float, float]], *, band: bool) -> Curve | None:
    """Mean over runs at the points that all of them have, with the t interval of the seeds; ``None`` if there are none.

    Two seeds get no band: with their t quantile of 12.7 it would hide everything else.
    """
    points = sorted(set.intersection(*map(set, series))) if series else []
    if not points:
        return None
    values = np.array([[one[point] for point in points] for one in series])
    low = high = np.full(len(points), np.nan)
    if band and len(series) >= FEWEST_SEEDS:
        estimates = [mean_estimate(column) for column in values.T]
        low, high = (np.array([getattr(each, end) for each in estimates]) for end in ("low", "high"))
    return Curve(np.array(points), values.mean(0), low, high)


def held_out_curves(runs: RecordedRuns, dataset: str, *, band: bool) -> dict[str, Curve]:
    """Variant → held-out accuracy, with the band cut at 0 and 1."""
    found = {}
    for name, by_seed in runs.by_variant.items():
        if curve := mean_curve([run.held_out()[dataset] for run in by_seed.values()], band=band):
            found[name] = replace(curve, low=curve.low.clip(0, 1), high=curve.high.clip(0, 1))
    return found


def diagnostic_curves(runs: RecordedRuns) -> dict[str, dict[str, Curve]]:
    """Title → variant → mean over seeds; metrics that were 0 throughout are left out."""
    panels = {title: training_curves(runs, key) for key, title in DIAGNOSTICS.items()}
    return {title: logged for title, logged in panels.items() if any(curve.mean.any() for curve in logged.values())}


def training_curves(runs: RecordedRuns, key: str, *, band: bool = False) -> dict[str, Curve]:
    """Variant → a metric of the training, over the seeds that logged it; variants that did not are left out."""
    found = {}
    for name, by_seed in runs.by_variant.items():
        series = [by_rollout(run.series(key)) for run in by_seed.values()]
        if curve := mean_curve([each for each in series if each], band=band):
            found[name] = curve
    return found


def by_rollout(series: dict[float, float]) -> dict[float, float]:
    """Mean over the optimizer steps of a rollout batch, at the batch's number: steps may train different tokens."""
    values: dict[float, list[float]] = {}
    for point, value in series.items():
        values.setdefault(math.ceil(point - 1e-9), []).append(value)
    return {point: float(np.mean(found)) for point, found in values.items()}

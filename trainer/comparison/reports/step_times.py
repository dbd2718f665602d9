"""Where the time of an optimizer step went, over a run."""

import math
from collections.abc import Sequence

import numpy as np

from trainer.comparison.reports.curves import mean_curve
from trainer.comparison.reports.figures import Stack
from trainer.comparison.reports.run_files import RecordedRun, RecordedRuns

PHASES = {
    "generate": "generation",
    "sync": "weights to vLLM",
    "old_logps": "scoring, π_old",
    "reference": "scoring, reference",
    "verify_wait": "waiting for verdicts",
    "prepare": "advantages and the rest",
    "update": "update",
    "log": "logging",
}
"""``timing/<phase>_s`` → what the legend calls it, from the bottom of the stack to its top."""
JUDGING = "all judging"
MOST_POINTS = 100
"""Of a picture; more are averaged, so that a long run's page stays small."""


def step_times(runs: RecordedRuns) -> dict[str, Stack]:
    """Variant → seconds of an optimizer step by phase, means over seeds; without variants that logged none."""
    found = {name: _stack(list(by_seed.values())) for name, by_seed in runs.by_variant.items()}
    return {name: stack for name, stack in found.items() if stack is not None}


def _stack(runs: Sequence[RecordedRun]) -> Stack | None:
    timed = [run for run in runs if run.series("timing/update_s")]
    points = max((max(run.series("timing/update_s")) for run in timed), default=0.0)
    width = max(1, math.ceil(points / MOST_POINTS))
    curves = {}
    for phase in (*PHASES, "verify"):
        series = [_binned(run.series(f"timing/{phase}_s"), width) for run in timed]
        curves[phase] = mean_curve(series, band=False)
    layers = {PHASES[name]: curve for name, curve in curves.items() if name in PHASES and curve and curve.mean.any()}
    judging = curves["verify"]
    if not layers:
        return None
    return Stack(
        next(iter(layers.values())).points,
        {title: curve.mean for title, curve in layers.items()},
        {} if judging is None else {JUDGING: judging.mean},
    )


def _binned(series: dict[float, float], width: int) -> dict[float, float]:
    """Means over ``width`` rollout batches each, at the last one's number: all optimizer steps of a batch together."""
    values: dict[float, list[float]] = {}
    for point, value in series.items():
        values.setdefault(math.ceil((point - 1e-9) / width) * width, []).append(value)
    return {point: float(np.mean(found)) for point, found in values.items()}

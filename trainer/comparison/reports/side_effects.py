"""What runs did beside raising accuracy: which coverage is left, and what the gain cost where nothing was to learn."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from trainer import statistics
from trainer.algorithms.drift import learning_tax
from trainer.comparison.reports.run_files import RecordedRun
from trainer.statistics import Estimate

NEWEST = 5
"""Logged values that the end of a run is the mean of: few groups are all right or all wrong in one batch."""


def coverage_gap(runs: Sequence[RecordedRun], dataset: str) -> Estimate | None:
    """pass@k − avg@k at the last evaluation, mean over the runs (see `trainer.evaluation.metrics.coverage_gap`).

    ``None`` where one of them drew a single sample of an item, or another number than the others.
    """
    sizes = {_most_samples(run, dataset) for run in runs}
    if len(sizes) != 1 or (samples := sizes.pop()) is None:
        return None
    series = [[run.series(f"eval/{dataset}/{name}@{samples}") for name in ("pass", "avg")] for run in runs]
    gaps = [passed[max(passed)] - average[max(average)] for passed, average in series if passed and average]
    return statistics.mean_estimate(np.array(gaps)) if len(gaps) == len(runs) else None


def _most_samples(run: RecordedRun, dataset: str) -> int | None:
    keys = {key for entry in run.metrics for key in entry}
    found = [re.fullmatch(rf"eval/{re.escape(dataset)}/avg@(\d+)", key) for key in keys]
    return max((int(match[1]) for match in found if match and int(match[1]) > 1), default=None)


def learning_taxes(runs: Sequence[RecordedRun], gained: tuple[float, float] | None) -> dict[str, float]:
    """``all_right``, ``all_wrong`` → `learning_tax` of the runs together: their mean KL over their mean gain.

    Args:
        gained: mean accuracies before and after.

    Empty where the runs logged no ``drift/kl_*`` (β = 0), or their start is not known; NaN without a gain.
    """
    taxes = {}
    for kind in ("all_right", "all_wrong"):
        ends = [np.mean(list(series.values())[-NEWEST:]) for run in runs if (series := run.series(f"drift/kl_{kind}"))]
        if gained is not None and ends and len(ends) == len(runs):
            taxes[kind] = learning_tax(float(np.mean(ends)), *gained)
    return taxes


def taxes_in_words(taxes: Mapping[str, float]) -> str:
    """On prompts all right, and those all wrong, in 1e-3 nats a token and point; a dash for what is not known."""
    known = [taxes.get(kind, math.nan) for kind in ("all_right", "all_wrong")]
    return " / ".join(f"{1000 * each:.2g}" if math.isfinite(each) else "–" for each in known)

"""A variant against its baseline: the difference with its verdict and its p-value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.reports.accuracies import areas_under_curves
from evenkeel.trainer.lab.reports.outcomes import ACCURACY, Outcome
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.statistics.intervals import mean_estimate, paired_difference
from evenkeel.trainer.lab.statistics.verdict import Verdict, verdict


@dataclass(frozen=True)
class Contrast:
    """A variant against its baseline in one outcome, on the seeds and items that both have.

    Attributes:
        mean: of the variant.
        p_value, adjusted_p: of the interval's t statistic, NaN without a verdict; adjusted by Holm's method for all.
        area: difference of the areas under the learning curves, beside accuracy; it gives no verdict of its own.
    """

    variant: str
    baseline: str
    outcome: str
    mean: Estimate
    difference: Estimate
    verdict: Verdict
    p_value: float
    adjusted_p: float
    area: Estimate | None


def contrast_of(
    variant: str,
    baseline: str,
    ours_by_seed: Mapping[int, RecordedRun],
    theirs_by_seed: Mapping[int, RecordedRun],
    dataset: str,
    outcome: Outcome = ACCURACY,
) -> Contrast:
    """The contrast of two variants' runs, seed → run, on the seeds in common: one at least.

    ``adjusted_p`` is NaN until all contrasts are known.

    Raises:
        StatisticsError: a run has no value, or no item is scored in all of them.
    """
    seeds = sorted(set(ours_by_seed) & set(theirs_by_seed))
    runs = [by_seed[seed] for by_seed in (ours_by_seed, theirs_by_seed) for seed in seeds]
    # on the items that all of them have
    ours, theirs = np.split(outcome.values(runs, dataset), 2)
    difference = paired_difference(ours, theirs)
    found = verdict(difference if outcome.sign > 0 else -difference)
    heights = areas_under_curves(runs, dataset) if outcome is ACCURACY else None
    area = None if heights is None else paired_difference(*np.split(heights, 2))
    p_value = math.nan if found.outcome == "no verdict" else difference.p_value
    mean = mean_estimate(ours)
    return Contrast(variant, baseline, outcome.name, mean, difference, found, p_value, math.nan, area)

"""A variant against its baseline: the difference with its verdict and its p-value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.reports.accuracies import areas_under_curves, final_accuracies
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.statistics.intervals import paired_difference
from evenkeel.trainer.lab.statistics.verdict import Verdict, verdict


@dataclass(frozen=True)
class Contrast:
    """A variant against its baseline, on the seeds and items that both have.

    Attributes:
        p_value, adjusted_p: of the interval's t statistic; adjusted by Holm's method for all contrasts.
        area: difference of the areas under the learning curves; it gives no verdict of its own.
    """

    variant: str
    baseline: str
    seeds: list[int]
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
) -> Contrast:
    """The contrast of two variants' runs, seed → run, on the seeds in common: one at least.

    ``adjusted_p`` is NaN until all contrasts are known.
    """
    seeds = sorted(set(ours_by_seed) & set(theirs_by_seed))
    runs = [by_seed[seed] for by_seed in (ours_by_seed, theirs_by_seed) for seed in seeds]
    ours, theirs = np.split(final_accuracies(runs, dataset), 2)  # on the items that all of them have
    difference = paired_difference(ours, theirs)
    heights = areas_under_curves(runs, dataset)
    area = None if heights is None else paired_difference(*np.split(heights, 2))
    return Contrast(variant, baseline, seeds, difference, verdict(difference), difference.p_value, math.nan, area)

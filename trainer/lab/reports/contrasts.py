"""A variant against its baseline: the difference with its verdict and its p-value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.accuracies import areas_under_curves, final_accuracies
from evenkeel.trainer.lab.reports.run_files import RecordedRun
from evenkeel.trainer.lab.statistics import Estimate, Look, Verdict


@dataclass(frozen=True)
class Contrast:
    """A variant against its baseline, on the items that both have, and on the seeds if they have any in common.

    Attributes:
        is_paired: by seed. Without a common seed all seeds of both are compared by Welch's t.
        seeds, baseline_seeds: those that were compared; the same where they pair.
        p_value, adjusted_p: of the interval's t statistic; adjusted by Holm's method for all contrasts.
        area: difference of the areas under the learning curves; it gives no verdict of its own.
        looks: those taken of a group-sequential comparison, see `reports.looks`.
    """

    variant: str
    baseline: str
    is_paired: bool
    seeds: list[int]
    baseline_seeds: list[int]
    difference: Estimate
    verdict: Verdict
    p_value: float
    adjusted_p: float
    area: Estimate | None
    looks: list[Look] = field(default_factory=list)

    @property
    def compared(self) -> str:
        """The number of seeds as text: "5 seeds", or "5 against 3 seeds, unpaired"."""
        if self.is_paired:
            return "1 seed" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        return f"{len(self.seeds)} against {len(self.baseline_seeds)} seeds, unpaired"


def contrast_of(
    variant: str,
    baseline: str,
    ours_by_seed: Mapping[int, RecordedRun],
    theirs_by_seed: Mapping[int, RecordedRun],
    dataset: str,
    confidence: float = statistics.CONFIDENCE,
) -> Contrast:
    """The contrast of two variants' runs, seed → run: paired by seed where any seed is in common.

    ``adjusted_p`` is NaN until all contrasts are known. ``confidence`` is that of the difference's and the area's
    intervals.
    """
    common = sorted(set(ours_by_seed) & set(theirs_by_seed))
    our_seeds, their_seeds = common or sorted(ours_by_seed), common or sorted(theirs_by_seed)
    runs = [*(ours_by_seed[seed] for seed in our_seeds), *(theirs_by_seed[seed] for seed in their_seeds)]
    both = final_accuracies(runs, dataset)  # together: on the items that all of them have
    ours, theirs = np.split(both, [len(our_seeds)])
    estimate = statistics.paired_difference if common else statistics.unpaired_difference
    difference = estimate(ours, theirs, confidence)
    heights = areas_under_curves(runs, dataset)
    area = None
    if heights is not None:
        our_heights, their_heights = np.split(heights, [len(our_seeds)])
        area = estimate(our_heights, their_heights, confidence)
    return Contrast(
        variant,
        baseline,
        bool(common),
        our_seeds,
        their_seeds,
        difference,
        statistics.verdict(difference),
        p_value=difference.p_value,
        adjusted_p=math.nan,
        area=area,
    )

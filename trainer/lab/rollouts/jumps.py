"""Where a run changes by more than its prompts explain: places to read first, not verdicts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import norm, t

from evenkeel.trainer.lab.rollouts.summaries import BatchSummary, Moments, mean_of, mean_over

LEAST = 4.0
"""Standard errors. Without any change one place in 16,000 (31,000 where a rise alone counts) goes beyond them."""
MOST = 3
"""Jumps of one kind that are listed."""
KINDS = {
    "reward": "reward jumps",
    "wrong_reward": "wrong answers get more reward",
    "length": "length jumps",
}
"""Metric → the name of its jump; of ``wrong_reward`` only a rise is reported."""


@dataclass(frozen=True)
class Jump:
    """A change between the batches before and from ``number`` on.

    Attributes:
        step: the optimizer step at which batch ``number`` was generated.
        before, after: means over the groups of ``window`` batches on either side.
        errors: the difference as a normal deviate; infinite where the groups of each side are all equal.
        accuracy: share right before and after; NaN where nothing was judged.
    """

    metric: str
    number: int
    step: int
    before: float
    after: float
    errors: float
    window: int
    accuracy: tuple[float, float]

    @property
    def kind(self) -> str:
        return KINDS[self.metric]


def jumps(batches: Sequence[BatchSummary]) -> list[Jump]:
    """The largest jumps of every kind, the most certain first.

    At every place the groups of the batches on either side are two samples of one variance: Student's
    ``t = (x̄₂ − x̄₁) / √(s² (1/n₁ + 1/n₂))`` of n₁ + n₂ − 2 degrees of freedom, given as the normal deviate of the same
    probability. Those of at least `LEAST` count, and of each neighbourhood only the largest.
    """
    found = [jump for metric in KINDS for jump in _jumps_of(batches, metric)]
    return sorted(found, key=lambda jump: -abs(jump.errors))


def _jumps_of(batches: Sequence[BatchSummary], metric: str) -> list[Jump]:
    window = max(1, min(10, len(batches) // 8))  # batches on either side: an eighth of the run, 1 to 10
    candidates: list[tuple[int, Jump]] = []
    for place in range(1, len(batches)):
        sides = batches[max(0, place - window) : place], batches[place : place + window]
        errors = _standard_errors(*([batch.metrics[metric] for batch in side] for side in sides))
        if abs(errors) >= LEAST and (errors > 0 or metric != "wrong_reward"):
            before, after = (mean_over(side, metric) for side in sides)
            was, became = (mean_over(side, "accuracy") for side in sides)
            at = batches[place]
            candidates.append((place, Jump(metric, at.number, at.step, before, after, errors, window, (was, became))))
    chosen: list[tuple[int, Jump]] = []
    for place, jump in sorted(candidates, key=lambda each: (-abs(each[1].errors), each[0])):
        if len(chosen) < MOST and all(abs(place - other) > window for other, _ in chosen):
            chosen.append((place, jump))
    return [jump for _, jump in chosen]


def _standard_errors(before: Sequence[Moments], after: Sequence[Moments]) -> float:
    sides = [_together(side) for side in (before, after)]
    (old, new), freedom = sides, sum(side.count for side in sides) - 2
    if not (old.count and new.count and freedom > 0) or math.isclose(old.mean, new.mean, rel_tol=1e-9, abs_tol=1e-12):
        return 0.0
    difference, variance = new.mean - old.mean, (old.squares + new.squares) / freedom
    if variance == 0:
        return math.copysign(math.inf, difference)
    statistic = difference / math.sqrt(variance * (1 / old.count + 1 / new.count))
    return math.copysign(float(norm.isf(t.sf(abs(statistic), freedom))), difference)


def _together(moments: Sequence[Moments]) -> Moments:
    """The moments of all groups of several batches."""
    mean = mean_of(moments)
    known = [each for each in moments if each.count]
    squares = sum(each.squares + each.count * (each.mean - mean) ** 2 for each in known)
    return Moments(sum(each.count for each in known), mean, squares)

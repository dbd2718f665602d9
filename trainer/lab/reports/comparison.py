"""The comparison of variants over seeds: each one's numbers, and its difference from the baseline with a verdict."""

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.reports.accuracies import (
    accuracy_estimate,
    area_under_curve,
    curves,
    final_accuracies,
    is_scored,
)
from evenkeel.trainer.lab.reports.contrasts import Contrast, contrast_of
from evenkeel.trainer.lab.reports.outcomes import ACCURACY, OUTCOMES
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns, total
from evenkeel.trainer.lab.statistics.intervals import StatisticsError
from evenkeel.trainer.lab.statistics.verdict import holm_adjusted


@dataclass(frozen=True)
class VariantNumbers:
    """The numbers of one variant over its seeds.

    Attributes:
        start, final: held-out accuracies.
        area: mean height of the learning curve.
        tokens, device_seconds: what a run cost, mean over seeds; ``None`` where some run did not record it.
    """

    name: str
    start: Estimate | None
    final: Estimate
    area: Estimate | None
    tokens: float | None
    device_seconds: float | None


@dataclass(frozen=True)
class Comparison:
    """All numbers on one held-out set.

    Attributes:
        contrasts: of all outcomes, one after the other.
        not_compared: notes on variants without a finished seed in common with their baseline, or without a value.
        left_out: names of runs without a scored answer.
    """

    dataset: str
    variants: list[VariantNumbers]
    contrasts: list[Contrast]
    not_compared: list[str]
    left_out: list[str]

    @property
    def num_tests(self) -> int:
        """Contrasts that have a p-value."""
        return sum(not math.isnan(each.p_value) for each in self.contrasts)

    def contrasts_in(self, outcome: str) -> list[Contrast]:
        """The contrasts of one outcome."""
        return [contrast for contrast in self.contrasts if contrast.outcome == outcome]

    def contrast_of(self, variant: str) -> Contrast | None:
        """The contrast of a variant's accuracy; ``None`` for a baseline, and without a common seed."""
        return next((each for each in self.contrasts_in("accuracy") if each.variant == variant), None)


def datasets_of(runs: RecordedRuns) -> list[str]:
    """The held-out sets that some run scored, in the order of the configuration."""
    found = {name for run in runs.all for name in run.held_out() if is_scored(run, name)}
    test = (runs.all[0].raw_config.get("data") or {}).get("test")
    order = list(test) if isinstance(test, dict) else []
    return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))


def comparison(runs: RecordedRuns, dataset: str, outcomes: Collection[str] = ("accuracy",)) -> Comparison:
    """The numbers of every variant on one held-out set, and of every variant against its baseline in ``outcomes``."""
    scored = scored_runs(runs, dataset)
    numbers = [_numbers(name, by_seed, dataset) for name, by_seed in scored.by_variant.items()]
    contrasts, notes = [], []
    for outcome, variant in itertools.product(outcomes, scored.by_variant):
        if (baseline := runs.baseline_of(variant)) is None:
            continue
        pair = scored.by_variant[variant], scored.by_variant.get(baseline, {})
        if not set.intersection(*map(set, pair)):
            notes.append(f"{variant} and its baseline {baseline} have no finished and scored seed in common.")
            continue
        try:
            contrasts.append(contrast_of(variant, baseline, *pair, dataset, OUTCOMES[outcome]))
        except StatisticsError as error:
            if outcome == ACCURACY.name:
                raise
            notes.append(f"Not compared in {outcome}: {variant} with {baseline}. {error}")
    left_out = [f"{run.variant} with seed {run.seed}" for run in runs.all if not is_scored(run, dataset)]
    return Comparison(dataset, numbers, contrasts, [*dict.fromkeys(notes)], left_out)


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """With each ``adjusted_p``: Holm's, for all contrasts together."""
    p_values = [each.p_value for found in comparisons for each in found.contrasts]
    left = map(float, holm_adjusted(p_values))
    return [
        replace(found, contrasts=[replace(each, adjusted_p=next(left)) for each in found.contrasts])
        for found in comparisons
    ]


def scored_runs(runs: RecordedRuns, dataset: str) -> RecordedRuns:
    """The runs whose last evaluation has a scored answer; variants without such a run are left out."""
    by_variant = {
        variant: scored
        for variant, by_seed in runs.by_variant.items()
        if (scored := {seed: run for seed, run in by_seed.items() if is_scored(run, dataset)})
    }
    return replace(runs, by_variant=by_variant)


def _numbers(name: str, by_seed: dict[int, RecordedRun], dataset: str) -> VariantNumbers:
    runs = list(by_seed.values())
    answers = runs[0].final_answers(dataset)
    completions = None if answers is None else sum(each.get("correct") is not None for each in answers.counted)
    points, values = curves(runs, dataset)
    several = len(points) > 1
    return VariantNumbers(
        name,
        start=accuracy_estimate(values[:, 0]) if several and points[0] == 0 else None,
        # raises where the runs have no scored item in common
        final=accuracy_estimate(final_accuracies(runs, dataset), completions),
        area=accuracy_estimate(area_under_curve(values, points)) if several else None,
        tokens=_mean_cost([run.tokens for run in runs]),
        device_seconds=_mean_cost([run.device_seconds for run in runs]),
    )


def _mean_cost(spent: Sequence[float | None]) -> float | None:
    whole = total(spent)
    return None if whole is None else whole / len(spent)

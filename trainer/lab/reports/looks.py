"""The looks of a group-sequential sweep, taken from its runs: always at the planned numbers of seeds, never between.

The result of a look depends only on the first n seeds, in the order of the sweep's file, so that the report and the
runner agree, also when they are repeated. Of several held-out sets the first one decides.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.accuracies import final_accuracies
from evenkeel.trainer.lab.reports.contrasts import Contrast, contrast_of
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.lab.statistics import Estimate, Look, StatisticsError, Verdict, look_at, look_levels

BySeed = Mapping[int, RecordedRun]


@dataclass(frozen=True)
class LookPlan:
    """Looks are taken after these numbers of the first ``seeds``; below ``futility`` a comparison is hopeless."""

    looks: list[int]
    futility: float
    seeds: list[int]

    @property
    def levels(self) -> list[float]:
        return look_levels(self.looks)


def look_plan(runs: RecordedRuns) -> LookPlan | None:
    """``None`` for a sweep without looks."""
    if not runs.stopping:
        return None
    return LookPlan(list(runs.stopping["looks"]), float(runs.stopping["futility"]), runs.seeds)


def looks_taken(plan: LookPlan, runs: RecordedRuns, judged: RecordedRuns, dataset: str, variant: str) -> list[Look]:
    """The looks at a variant up to the one that ended its comparison, or to the last for which all runs are there.

    A look that lacks a run which has failed for good is left out, except the last one: it is taken on the remaining
    pairs, at its own level.

    Args:
        judged: those of ``runs`` that have a judged answer on ``dataset``.
    """
    baseline = runs.baseline[variant]
    ours, theirs = judged.by_variant.get(variant, {}), judged.by_variant.get(baseline, {})
    lost = _lost(runs, judged, variant) | _lost(runs, judged, baseline)
    found: list[Look] = []
    for position, number in enumerate(plan.looks):
        planned = plan.seeds[:number]
        pairs = [(ours[seed], theirs[seed]) for seed in planned if seed in ours and seed in theirs]
        if any(seed not in lost and not (seed in ours and seed in theirs) for seed in planned):
            break
        is_last = position == len(plan.looks) - 1
        usable = len(pairs) == number or (is_last and pairs)
        difference = _difference(pairs, dataset, 1 - plan.levels[position]) if usable else None
        found.append(look_at(difference, plan.looks, plan.levels, position, plan.futility))
        if found[-1].stops:
            break
    return found


def contrast_at_looks(
    plan: LookPlan, looks: Sequence[Look], variant: str, baseline: str, ours: BySeed, theirs: BySeed, dataset: str
) -> Contrast:
    """The contrast as its newest look saw it: on the seeds of that look, intervals and p adjusted for all looks.

    ``p_value`` is the sequential one, so that Holm's method may follow. Before the first look there is no verdict.
    """
    taken = [position for position, look in enumerate(looks) if look.difference is not None]
    newest = taken[-1] if taken else 0
    by_look = [[seed for seed in plan.seeds[:number] if seed in ours and seed in theirs] for number in plan.looks]
    seeds = by_look[newest] or by_look[-1]
    left, right = ({seed: side[seed] for seed in seeds} for side in (ours, theirs))
    found = contrast_of(variant, baseline, left, right, dataset, 1 - plan.levels[newest])
    differences = [
        _difference([(ours[seed], theirs[seed]) for seed in by_look[position]], dataset) if position in taken else None
        for position in range(len(looks))
    ]
    p_values = [math.nan if difference is None else difference.p_value for difference in differences]
    return replace(
        found,
        area=found.area if taken else None,
        p_value=statistics.sequential_p(p_values, plan.looks) if taken else math.nan,
        verdict=_verdict(plan, looks, taken, found.verdict),
        looks=list(looks),
    )


def _verdict(plan: LookPlan, looks: Sequence[Look], taken: Sequence[int], by_interval: Verdict) -> Verdict:
    if not taken:
        return Verdict("no verdict", f"no verdict yet: the first look is at {plan.looks[0]} seeds")
    look, where = looks[taken[-1]], f"look {taken[-1] + 1} of {len(plan.looks)}"
    if by_interval.outcome in ("better", "worse"):
        return replace(by_interval, sentence=f"{by_interval.sentence.removesuffix(')')}, {where})")
    if look.outcome == "hopeless":
        sentence = (
            f"not distinguishable with {look.seeds} seeds; stopped at {where}, where the chance that {plan.looks[-1]} "
            f"seeds would tell them apart was {look.chance:.2f}"
        )
        return Verdict("not distinguishable", sentence, by_interval.seeds_needed)
    if look.outcome == "goes on":
        coming = plan.looks[min(len(looks), len(plan.looks) - 1)]
        return Verdict("no verdict", f"no verdict yet at {where}: the next one is at {coming} seeds")
    return replace(by_interval, sentence=f"{by_interval.sentence} ({where})")


def _difference(
    pairs: Sequence[tuple[RecordedRun, RecordedRun]], dataset: str, confidence: float = statistics.CONFIDENCE
) -> Estimate | None:
    """Of paired runs; ``None`` where there are none, or no item that all were judged on."""
    if not pairs:
        return None
    both = final_accuracies([*(ours for ours, _ in pairs), *(theirs for _, theirs in pairs)], dataset)
    try:
        return statistics.paired_difference(both[: len(pairs)], both[len(pairs) :], confidence)
    except StatisticsError:
        return None


def _lost(runs: RecordedRuns, judged: RecordedRuns, variant: str) -> set[int]:
    """Seeds without a result: failed, or finished without a judged answer."""
    finished, usable = runs.by_variant.get(variant, {}), judged.by_variant.get(variant, {})
    return {seed for name, seed in runs.failed if name == variant} | {seed for seed in finished if seed not in usable}

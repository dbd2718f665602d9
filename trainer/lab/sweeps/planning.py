"""Which differences a planned sweep can detect, and what it costs: the answer of `evenkeel sweep plan`.

It follows from a pilot's variances (`sweeps.pilots`) by the power of the verdict's own test (`statistics.planning`). A
plan is for one comparison, a variant against the baseline; the hours are those of the whole sweep. With `stopping:` the
power is that of the last look alone, to which earlier looks add little, and the hours assume that nothing stops early.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic_core import to_json

from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.tables import Table, plain_table
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS
from evenkeel.trainer.lab.sweeps.cells import cells_of, grid_points
from evenkeel.trainer.lab.sweeps.pilots import Pilot, PilotPoint
from evenkeel.trainer.lab.sweeps.schema import LocalExecution, Sweep

SEED_STEPS = (3, 5, 8, 12, 20)
ITEM_STEPS = (0.25, 1, 4)
POWER_STEPS = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Multiples of the planned sweep's detectable difference at which its power is given."""


@dataclass(frozen=True)
class Design:
    """A sweep of so many seeds, held-out items and rollout batches, and what it detects in one comparison.

    Attributes:
        detectable: the smallest true difference detected with probability 0.8.
        power: at the wanted difference; ``None`` where none is given.
        hours: of all cells, one after the other.
    """

    seeds: int
    items: int
    rollouts: float
    detectable: float
    power: float | None
    hours: float


@dataclass(frozen=True)
class SweepPlan:
    """What `plan` says.

    Attributes:
        planned: the sweep as its file says.
        between: ``planned.detectable`` if the seeds' spread were at either end of its 95 % interval.
        curve: difference → power of the planned sweep.
        by_size: seeds × items at the end of training.
        by_rollouts: the planned seeds and items after every evaluation of the pilot.
        seeds_needed: for the wanted difference with the planned items; ``None`` without one, or where seeds are not
            enough.
        tuning_cells: cells before the comparison, with ``tune:``.
        parallel: cells at a time.
        confidence: of the interval that gives the verdict: 95 %, or the last look's, for any number of seeds.
    """

    name: str
    pilot: Pilot
    samples: int
    planned: Design
    between: tuple[float, float]
    curve: Mapping[float, float]
    by_size: list[Design]
    by_rollouts: list[Design]
    wanted: float | None
    seeds_needed: int | None
    cells: int
    tuning_cells: int
    parallel: int
    confidence: float


def plan_of(
    sweep: Sweep, pilot: Pilot, samples: int, items: int | None = None, wanted: float | None = None
) -> SweepPlan:
    """The plan of a sweep.

    Args:
        samples: completions an item at each evaluation; of a pilot with one each its own number is taken.
        items: held-out rows; otherwise as many as the pilot's.
        wanted: a difference that the sweep should detect.
    """
    samples = samples if pilot.samples > 1 else pilot.samples
    rows, seeds, last = items or pilot.num_items, len(sweep.seeds), pilot.points[-1]
    variants = len({cell.variant for cell in cells_of(sweep.model_copy(update={"seeds": sweep.seeds[:1]}))})
    confidence = 1 - statistics.look_levels(sweep.stopping.looks)[-1] if sweep.stopping else statistics.CONFIDENCE
    tuning = 0
    if sweep.tune is not None:
        tuning = len(sweep.variants) * len(grid_points(sweep.tune.grid)) * len(sweep.tune.seeds)

    def design(seeds: int, rows: int, point: PilotPoint) -> Design:
        hours = point.hours + point.evaluation_hours * (rows * samples / (pilot.num_items * pilot.samples) - 1)
        parts = (point.components, seeds, rows, samples)
        detectable = statistics.detectable_difference(*parts, confidence=confidence)
        power = None if wanted is None else statistics.verdict_power(wanted, *parts, confidence)
        return Design(seeds, rows, point.rollouts, detectable, power, hours * (seeds * variants + tuning))

    planned = design(seeds, rows, last)
    size = (last.components, seeds, rows, samples, confidence)
    differences = [step * planned.detectable for step in POWER_STEPS] if seeds >= FEWEST_SEEDS else []
    sizes = sorted({*SEED_STEPS, max(seeds, FEWEST_SEEDS)})
    counts = sorted({*(max(2, round(rows * step)) for step in ITEM_STEPS)})
    executor = sweep.executor
    return SweepPlan(
        sweep.name,
        pilot,
        samples,
        planned,
        _between(last, seeds, rows, samples, confidence),
        {difference: statistics.verdict_power(difference, *size) for difference in differences},
        [design(number, count, last) for number in sizes for count in counts],
        [design(seeds, rows, point) for point in pilot.points],
        wanted,
        None
        if wanted is None
        else statistics.planned_seeds(wanted, last.components, rows, samples, confidence=confidence),
        seeds * variants,
        tuning,
        executor.parallel if isinstance(executor, LocalExecution) else 1,
        confidence,
    )


def _between(point: PilotPoint, seeds: int, rows: int, samples: int, confidence: float) -> tuple[float, float]:
    """What would be detectable if the spread between seeds were the least, or the most, that the pilot allows."""
    components = point.components
    low, high = (
        statistics.detectable_difference(
            replace(components, seeds=max(0.0, of_seeds - components.rest(samples) / rows)),
            seeds,
            rows,
            samples,
            confidence=confidence,
        )
        for factor in statistics.uncertainty(components.freedom)
        for of_seeds in [components.seed_variance(rows, samples) * factor**2]
    )
    return low, high


def plan_json(plan: SweepPlan) -> str:
    """The plan as JSON; numbers that are not finite are null."""
    last = plan.pilot.points[-1]
    data: dict[str, Any] = {
        "sweep": plan.name,
        "pilot": {"directory": str(plan.pilot.directory), "cells": plan.pilot.cells, "paired": plan.pilot.paired},
        "held_out": plan.pilot.dataset,
        "samples": plan.samples,
        "cells": plan.cells,
        "tuning_cells": plan.tuning_cells,
        "parallel": plan.parallel,
        "components": asdict(last.components),
        "pilot_differences": dict(last.differences),
        "planned": asdict(plan.planned),
        "planned_between": list(plan.between),
        "power": [{"difference": difference, "power": power} for difference, power in plan.curve.items()],
        "wanted": plan.wanted,
        "seeds_needed": plan.seeds_needed,
        "by_size": [asdict(design) for design in plan.by_size],
        "by_rollouts": [asdict(design) for design in plan.by_rollouts],
        "confidence": plan.confidence,
    }
    return to_json(data, indent=2, inf_nan_mode="null").decode()


def plan_sentences(plan: SweepPlan) -> Iterator[str]:
    """The answer in sentences, before the tables."""
    pilot, planned = plan.pilot, plan.planned
    how = "paired by seed" if pilot.paired else "of runs taken as unpaired, which overestimates the noise"
    yield (
        f"Pilot: {len(pilot.cells)} cells in {pilot.directory}, {pilot.num_items} items of {pilot.dataset} × "
        f"{pilot.samples} completions, {planned.rollouts:g} rollout batches; differences {how}."
    )
    tuning = f" after {plan.tuning_cells} for tuning" if plan.tuning_cells else ""
    wall = planned.hours / plan.parallel
    cost = f"{plan.cells} cells{tuning}: {_hours(planned.hours)}, {_hours(wall)} with {plan.parallel} at a time"
    if planned.seeds < FEWEST_SEEDS:
        yield f"{plan.name}: {cost}. {planned.seeds} seeds give no verdict: write {FEWEST_SEEDS} at least."
    else:
        low, high = plan.between
        yield (
            f"{plan.name}: {cost}. With {planned.seeds} seeds and {planned.items} items it detects a true difference "
            f"of {planned.detectable:.3f} in 80 % of sweeps. The pilot estimates the seeds' spread only roughly: "
            f"this may be between {low:.3f} and {high:.3f}."
        )
        half = next(iter(plan.curve))
        yield (
            f"What it misses: a true difference of {half:.3f} would not be detected in {1 - plan.curve[half]:.0%} of "
            "sweeps; “not distinguishable” is no evidence against it."
        )
    if plan.wanted is not None:
        power = f"A difference of {plan.wanted:g} is detected with probability {planned.power:.2f}"
        if plan.seeds_needed is None:
            yield f"{power}; with {planned.items} items not even 1,000 seeds would make it 0.8: take more items."
        else:
            yield f"{power}; {plan.seeds_needed} seeds would make it 0.8{_level(plan, ', ')}."


def plan_tables(plan: SweepPlan) -> Iterator[Table]:
    """Power, seeds × items, stopping sooner, and the parts of the noise."""
    planned, points = plan.planned, plan.pilot.points
    powers = [(f"{difference:.3f}", f"{power:.0%}") for difference, power in plan.curve.items()]
    yield plain_table("Power of the sweep as planned", ("true difference", "detected in"), powers, _level(plan))
    counts = list(dict.fromkeys(design.items for design in plan.by_size))
    yield plain_table(
        "smallest difference detected in 80 %"
        + ("" if plan.wanted is None else f", power at {plan.wanted:g}")
        + ", hours of cells",
        ("seeds", *(f"{count} items" for count in counts)),
        [
            (str(seeds), *(_detected(design) for design in plan.by_size if design.seeds == seeds))
            for seeds in dict.fromkeys(design.seeds for design in plan.by_size)
        ],
        f"After {planned.rollouts:g} rollout batches{_level(plan, ', ')}.",
    )
    rows = []
    for design, point in zip(plan.by_rollouts, points, strict=True):
        seen = sorted(point.differences.values())
        ends = " … ".join(f"{end:+.3f}" for end in dict.fromkeys(seen[:1] + seen[-1:]))
        numbers = (f"{design.rollouts:g}", f"{point.accuracy:.3f}", f"{design.detectable:.3f}", f"{design.hours:.2g}")
        rows.append((*numbers, ends))
    yield plain_table(
        f"Stopped sooner, with {planned.seeds} seeds and {planned.items} items",
        ("rollout batches", "accuracy", "detected in 80 %", "hours", "differences in the pilot"),
        rows,
    )
    components, cells = points[-1].components, planned.seeds * planned.items
    parts = {
        "between seeds": (components.seeds, components.seeds / planned.seeds),
        "between items": (components.items, components.items / planned.items),
        "seed × item": (components.seed_items, components.seed_items / cells),
        "sampling, one completion": (components.sampling, components.sampling / (plan.samples * cells)),
    }
    whole = sum(share for _, share in parts.values())
    yield plain_table(
        "Where the noise of a difference comes from",
        ("", "standard deviation", "share of the planned sweep's variance"),
        [
            (name, f"{math.sqrt(variance):.4f}", f"{share / whole:.0%}" if whole else "")
            for name, (variance, share) in parts.items()
        ],
        "" if plan.pilot.samples > 1 else "With one completion an item, sampling is part of seed × item.",
    )


def _level(plan: SweepPlan, before: str = "") -> str:
    """Empty where the verdict is that of 95 % intervals, as it is without looks."""
    is_usual = plan.confidence == statistics.CONFIDENCE
    return "" if is_usual else f"{before}judged by the last look's {plan.confidence:.1%} interval"


def _detected(design: Design) -> str:
    power = "" if design.power is None else f", {design.power:.0%}"
    return f"{design.detectable:.3f}{power}, {_hours(design.hours)}"


def _hours(hours: float) -> str:
    if math.isnan(hours):  # the time of no cell of the pilot is known
        return "unknown time"
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"

"""What a planned sweep will be able to see, and what it costs: the answer of `scripts/sweep.py plan`.

From a pilot's variances (`sweeps.pilots`) by the power of the verdict's own test (`statistics.planning`). A plan is for
one comparison, a variant against the baseline; the hours are those of the whole sweep. With `stopping:` the power is
that of the last look alone, to which earlier ones add little, and the hours are those without a stop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer import statistics
from trainer.comparison.plain_data import plain_data
from trainer.comparison.sweeps.cells import cells_of, grid_points
from trainer.comparison.sweeps.pilots import Pilot, PilotPoint
from trainer.comparison.sweeps.schema import LocalExecution, Sweep
from trainer.statistics.verdict import FEWEST_SEEDS

SEED_STEPS = (3, 5, 8, 12, 20)
ITEM_STEPS = (0.25, 1, 4)
POWER_STEPS = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Multiples of the planned sweep's detectable difference at which its power is told."""


@dataclass(frozen=True)
class Design:
    """A sweep of so many seeds, held-out items and rollout batches, and what it sees of one comparison.

    Attributes:
        detectable: the smallest true difference found with probability 0.8.
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
        between: ``planned.detectable``, were the seeds' spread at the ends of its 95 % interval.
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
        wanted: a difference that the sweep should find.
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
    sizes = sorted({*SEED_STEPS, max(seeds, FEWEST_SEEDS)})
    counts = sorted({*(max(2, round(rows * step)) for step in ITEM_STEPS)})
    executor = sweep.executor
    return SweepPlan(
        sweep.name,
        pilot,
        samples,
        planned,
        _between(last, seeds, rows, samples, confidence),
        _curve(planned, last, samples, confidence),
        [design(size, count, last) for size in sizes for count in counts],
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


def _curve(planned: Design, point: PilotPoint, samples: int, confidence: float) -> dict[float, float]:
    if planned.seeds < FEWEST_SEEDS:
        return {}
    size = (point.components, planned.seeds, planned.items, samples, confidence)
    differences = [step * planned.detectable for step in POWER_STEPS]
    return {difference: statistics.verdict_power(difference, *size) for difference in differences}


def _between(point: PilotPoint, seeds: int, rows: int, samples: int, confidence: float) -> tuple[float, float]:
    """What would be detectable if the spread between seeds were the least, or the most, that the pilot allows."""
    components = point.components
    whole = components.seed_variance(rows, samples)
    found = []
    for factor in statistics.uncertainty(components.freedom):
        of_seeds = max(0.0, whole * factor**2 - components.rest(samples) / rows)
        parts = _with_seeds(components, of_seeds)
        found.append(statistics.detectable_difference(parts, seeds, rows, samples, confidence=confidence))
    return found[0], found[1]


def _with_seeds(components: statistics.DifferenceComponents, of_seeds: float) -> statistics.DifferenceComponents:
    parts = (components.items, components.seed_items, components.sampling, components.freedom)
    return statistics.DifferenceComponents(of_seeds, *parts)


def plan_data(plan: SweepPlan) -> dict[str, Any]:
    """The plan as plain data, for JSON; numbers that are not finite are null."""
    last = plan.pilot.points[-1]
    return plain_data(
        {
            "sweep": plan.name,
            "pilot": {"directory": str(plan.pilot.directory), "cells": plan.pilot.cells, "paired": plan.pilot.paired},
            "held_out": plan.pilot.dataset,
            "samples": plan.samples,
            "cells": plan.cells,
            "tuning_cells": plan.tuning_cells,
            "parallel": plan.parallel,
            "components": {name: getattr(last.components, name) for name in COMPONENTS},
            "pilot_differences": dict(last.differences),
            "planned": _design_data(plan.planned),
            "planned_between": list(plan.between),
            "power": [{"difference": difference, "power": power} for difference, power in plan.curve.items()],
            "wanted": plan.wanted,
            "seeds_needed": plan.seeds_needed,
            "by_size": _designs_data(plan.by_size),
            "by_rollouts": _designs_data(plan.by_rollouts),
            "confidence": plan.confidence,
        }
    )


COMPONENTS = ("seeds", "items", "seed_items", "sampling", "freedom")


def _designs_data(designs: Sequence[Design]) -> list[dict[str, Any]]:
    return [_design_data(design) for design in designs]


def _design_data(design: Design) -> dict[str, Any]:
    return {
        "seeds": design.seeds,
        "items": design.items,
        "rollouts": design.rollouts,
        "detectable": design.detectable,
        "power": design.power,
        "hours": design.hours,
    }

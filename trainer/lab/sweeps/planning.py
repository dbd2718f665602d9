"""Predict which differences a planned sweep can detect: the answer of `evenkeel sweep plan`.

It follows from a pilot's variances (`sweeps.pilots`) by the power of the verdict's own test (`statistics.planning`). A
plan is for one comparison, a variant against the baseline.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.tables import Table, table_of
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.pilots import Pilot
from evenkeel.trainer.lab.sweeps.schema import Sweep

SEED_STEPS = (3, 5, 8, 12, 20)


@dataclass(frozen=True)
class Design:
    """A number of seeds, and what they detect in one comparison.

    Attributes:
        detectable: the smallest true difference detected with probability 0.8.
        power: at the wanted difference; ``None`` where none is given.
    """

    seeds: int
    detectable: float
    power: float | None


@dataclass(frozen=True)
class SweepPlan:
    """The answer of `plan`.

    Attributes:
        items: held-out items, each with as many completions as the pilot's.
        planned: the sweep as its file says.
        between: ``planned.detectable`` if the seeds' spread were at either end of its 95 % interval.
        by_seeds: the same for other numbers of seeds.
        seeds_needed: for the wanted difference; ``None`` without one, or where seeds are not enough.
    """

    name: str
    pilot: Pilot
    items: int
    cells: int
    planned: Design
    between: tuple[float, float]
    by_seeds: list[Design]
    wanted: float | None
    seeds_needed: int | None


def plan_of(sweep: Sweep, pilot: Pilot, items: int | None = None, wanted: float | None = None) -> SweepPlan:
    """The plan of a sweep.

    Args:
        items: held-out rows; otherwise as many as the pilot's.
        wanted: a difference that the sweep should detect.
    """
    items, seeds = items or pilot.num_items, len(sweep.seeds)

    def design(seeds: int) -> Design:
        parts = (pilot.components, seeds, items)
        power = None if wanted is None else statistics.verdict_power(wanted, *parts)
        return Design(seeds, statistics.detectable_difference(*parts), power)

    def detectable_if_seeds_vary(factor: float) -> float:
        of_seeds = pilot.components.seed_variance(items) * factor**2
        parts = replace(pilot.components, seeds=max(0.0, of_seeds - pilot.components.seed_items / items))
        return statistics.detectable_difference(parts, seeds, items)

    low, high = map(detectable_if_seeds_vary, statistics.uncertainty(pilot.components.freedom))
    return SweepPlan(
        sweep.name,
        pilot,
        items,
        len(cells_of(sweep)),
        design(seeds),
        (low, high),
        [design(number) for number in sorted({*SEED_STEPS, max(seeds, FEWEST_SEEDS)})],
        wanted,
        None if wanted is None else statistics.planned_seeds(wanted, pilot.components, items),
    )


def plan_sentences(plan: SweepPlan) -> Iterator[str]:
    """The answer in sentences, before the table."""
    pilot, planned = plan.pilot, plan.planned
    how = "paired by seed" if pilot.paired else "of runs taken as unpaired, which overestimates the noise"
    yield (
        f"Pilot: {len(pilot.cells)} cells in {pilot.directory}, {pilot.num_items} items of {pilot.dataset}, "
        f"{pilot.rollouts:g} rollout batches; differences {how}."
    )
    if planned.seeds < FEWEST_SEEDS:
        yield f"{plan.name}: {planned.seeds} seeds give no verdict: write {FEWEST_SEEDS} at least."
    else:
        low, high = plan.between
        yield (
            f"{plan.name}: {plan.cells} cells. With {planned.seeds} seeds and {plan.items} items it detects a true "
            f"difference of {planned.detectable:.3f} in 80 % of sweeps. The pilot estimates the seeds' spread only "
            f"roughly: this may be between {low:.3f} and {high:.3f}."
        )
    if plan.wanted is not None:
        power = f"A difference of {plan.wanted:g} is detected with probability {planned.power:.2f}"
        if plan.seeds_needed is None:
            yield f"{power}; with {plan.items} items not even 1,000 seeds would make it 0.8: take more items."
        else:
            yield f"{power}; {plan.seeds_needed} seeds would make it 0.8."


def plan_table(plan: SweepPlan) -> Table:
    """A row for each number of seeds."""
    titles = ["seeds", "smallest difference detected in 80 %"]
    rows = [[str(design.seeds), f"{design.detectable:.3f}"] for design in plan.by_seeds]
    if plan.wanted is not None:
        titles.append(f"power at {plan.wanted:g}")
        rows = [[*row, f"{design.power:.0%}"] for row, design in zip(rows, plan.by_seeds, strict=True)]
    caption = f"With {plan.items} items, after {plan.pilot.rollouts:g} rollout batches."
    return table_of(plan.name, titles, rows, caption)

"""How a plan is told on a terminal: what the sweep can see and cannot, what more would cost."""

import math
from collections.abc import Iterator

from rich.table import Table

from trainer import statistics
from trainer.comparison.sweeps.planning import Design, SweepPlan
from trainer.statistics.verdict import FEWEST_SEEDS


def plan_sentences(plan: SweepPlan) -> Iterator[str]:
    """The answer in words, before the tables."""
    pilot, planned = plan.pilot, plan.planned
    how = "paired by seed" if pilot.paired else "of runs taken as unpaired, which errs to the cautious side"
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
            f"{plan.name}: {cost}. With {planned.seeds} seeds and {planned.items} items it finds a true difference of "
            f"{planned.detectable:.3f} in 80 % of sweeps. So few cells do not know the spread between seeds well: "
            f"it may be {low:.3f} as well as {high:.3f}."
        )
        half = next(iter(plan.curve))
        yield (
            f"What it cannot see: a difference of {half:.3f} would be missed in {1 - plan.curve[half]:.0%} of sweeps, "
            "and “not distinguishable” says nothing against it."
        )
    if plan.wanted is not None:
        yield _wanted(plan)


def _wanted(plan: SweepPlan) -> str:
    power = f"A difference of {plan.wanted:g} is found with probability {plan.planned.power:.2f}"
    if plan.seeds_needed is None:
        return f"{power}; no number of seeds up to 1,000 makes it 0.8 with {plan.planned.items} items: take more items."
    return f"{power}; {plan.seeds_needed} seeds would make it 0.8{_level(plan, ', ')}."


def component_table(plan: SweepPlan) -> Table:
    """Standard deviations of a difference, and their shares of its variance as planned."""
    components, planned = plan.pilot.points[-1].components, plan.planned
    parts = {
        "between seeds": (components.seeds, components.seeds / planned.seeds),
        "between items": (components.items, components.items / planned.items),
        "seed × item": (components.seed_items, components.seed_items / (planned.seeds * planned.items)),
        "sampling, one completion": (
            components.sampling,
            components.sampling / (plan.samples * planned.seeds * planned.items),
        ),
    }
    whole = sum(share for _, share in parts.values())
    caption = "" if plan.pilot.samples > 1 else "Of one completion an item, sampling is part of seed × item."
    table = Table(title="Where the noise of a difference comes from", caption=caption)
    for name in ("", "standard deviation", "share of the planned sweep's variance"):
        table.add_column(name, justify="right" if name else "left")
    for name, (variance, share) in parts.items():
        table.add_row(name, f"{math.sqrt(variance):.4f}", f"{share / whole:.0%}" if whole else "")
    return table


def size_table(plan: SweepPlan) -> Table:
    """Seeds × items."""
    counts = list(dict.fromkeys(design.items for design in plan.by_size))
    meaning = "smallest difference found in 80 %" + ("" if plan.wanted is None else f", power at {plan.wanted:g}")
    table = Table(
        title=f"{meaning}, hours of cells",
        caption=f"After {plan.planned.rollouts:g} rollout batches{_level(plan, ', ')}.",
    )
    table.add_column("seeds", justify="right")
    for count in counts:
        table.add_column(f"{count} items", justify="right")
    for seeds in dict.fromkeys(design.seeds for design in plan.by_size):
        table.add_row(str(seeds), *(_seen(design) for design in plan.by_size if design.seeds == seeds))
    return table


def rollout_table(plan: SweepPlan) -> Table:
    """The planned seeds and items after every evaluation of the pilot."""
    table = Table(title=f"Stopped sooner, with {plan.planned.seeds} seeds and {plan.planned.items} items")
    for name in ("rollout batches", "accuracy", "found in 80 %", "hours", "differences seen in the pilot"):
        table.add_column(name, justify="right")
    for design, point in zip(plan.by_rollouts, plan.pilot.points, strict=True):
        seen = sorted(point.differences.values())
        ends = " … ".join(f"{end:+.3f}" for end in dict.fromkeys(seen[:1] + seen[-1:]))
        row = (f"{design.rollouts:g}", f"{point.accuracy:.3f}", f"{design.detectable:.3f}", f"{design.hours:.2g}")
        table.add_row(*row, ends)
    return table


def power_table(plan: SweepPlan) -> Table:
    """The power curve of the sweep as planned."""
    table = Table(title="Power of the sweep as planned", caption=_level(plan))
    for name in ("true difference", "found in"):
        table.add_column(name, justify="right")
    for difference, power in plan.curve.items():
        table.add_row(f"{difference:.3f}", f"{power:.0%}")
    return table


def _level(plan: SweepPlan, before: str = "") -> str:
    """Nothing where the verdict is that of 95 % intervals, as it is without looks."""
    is_usual = plan.confidence == statistics.CONFIDENCE
    return "" if is_usual else f"{before}judged by the last look's {plan.confidence:.1%} interval"


def _seen(design: Design) -> str:
    power = "" if design.power is None else f", {design.power:.0%}"
    return f"{design.detectable:.3f}{power}, {_hours(design.hours)}"


def _hours(hours: float) -> str:
    if math.isnan(hours):  # no cell of the pilot knows its time
        return "unknown time"
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"

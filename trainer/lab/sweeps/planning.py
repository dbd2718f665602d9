"""Predict which differences a planned sweep can detect: the answer of `evenkeel sweep plan`."""

from collections.abc import Iterator
from dataclasses import replace

from evenkeel.trainer.lab.reports.tables import Table, table_of
from evenkeel.trainer.lab.statistics.planning import detectable_difference, planned_seeds, uncertainty, verdict_power
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS
from evenkeel.trainer.lab.sweeps.cells import cells_of
from evenkeel.trainer.lab.sweeps.pilots import Pilot
from evenkeel.trainer.lab.sweeps.schema import Sweep

SEED_STEPS = (3, 5, 8, 12, 20)


def detectable_range(pilot: Pilot, seeds: int, items: int) -> tuple[float, float]:
    """The detectable difference at the lower and the upper end of the 95 % interval of the seeds' spread."""

    def detectable(factor: float) -> float:
        of_seeds = pilot.components.seed_variance(items) * factor**2
        parts = replace(pilot.components, seeds=max(0.0, of_seeds - pilot.components.seed_items / items))
        return detectable_difference(parts, seeds, items)

    low, high = map(detectable, uncertainty(pilot.components.freedom))
    return low, high


def plan_sentences(sweep: Sweep, pilot: Pilot, items: int, wanted: float | None) -> Iterator[str]:
    """Sentences on what the sweep will detect with ``items`` held-out rows, and whether it will a ``wanted`` one."""
    seeds, components, outcome = len(sweep.seeds), pilot.components, pilot.outcome
    on_items = f" and {items} items" if outcome.by_item else ""
    held_out = f", {pilot.num_items} items of {pilot.dataset}" if outcome.by_item else ""
    how = "paired by seed" if pilot.paired else "unpaired, which overestimates the noise"
    yield f"Pilot: {len(pilot.cells)} cells in {pilot.directory}{held_out}, {how}."
    if seeds < FEWEST_SEEDS:
        yield f"{sweep.name}: {seeds} seeds give no verdict: write {FEWEST_SEEDS} at least."
    else:
        low, high = detectable_range(pilot, seeds, items)
        yield (
            f"{sweep.name}: {len(cells_of(sweep))} cells. With {seeds} seeds{on_items} it detects a true difference of "
            f"{detectable_difference(components, seeds, items):.3f} in 80 % of sweeps; by the pilot's uncertainty "
            f"between {low:.3f} and {high:.3f}. Of {outcome.name}, in {outcome.unit}."
        )
    if wanted is not None:
        needed = planned_seeds(wanted, components, items)
        enough = f"not even 1,000 seeds{on_items}" if needed is None else f"{needed} seeds"
        power = verdict_power(wanted, components, seeds, items)
        yield f"A difference of {wanted:g} is detected with probability {power:.2f}; {enough} would make it 0.8."


def plan_table(sweep: Sweep, pilot: Pilot, items: int, wanted: float | None) -> Table:
    """A row for each number of seeds."""
    titles = ["seeds", "smallest difference detected in 80 %"]
    rows = []
    for seeds in sorted({*SEED_STEPS, max(len(sweep.seeds), FEWEST_SEEDS)}):
        row = [str(seeds), f"{detectable_difference(pilot.components, seeds, items):.3f}"]
        if wanted is not None:
            row.append(f"{verdict_power(wanted, pilot.components, seeds, items):.0%}")
        rows.append(row)
    if wanted is not None:
        titles.append(f"power at {wanted:g}")
    caption = f"With {items} items." if pilot.outcome.by_item else ""
    return table_of(f"{sweep.name}: {pilot.outcome.name}", titles, rows, caption)

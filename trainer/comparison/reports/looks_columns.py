"""Which looks a group-sequential sweep took, what each saw, and which comparisons it ended."""

import math
from dataclasses import dataclass

from trainer.comparison.reports.columns import difference
from trainer.comparison.reports.comparison import Comparison
from trainer.comparison.reports.formats import number
from trainer.comparison.reports.run_files import NOT_NEEDED, RecordedRuns
from trainer.comparison.reports.tables import EMPTY, Column, Table, TableCell, table_of
from trainer.statistics import Look


@dataclass(frozen=True)
class LookRow:
    """One look at one comparison; ``number`` from 1."""

    variant: str
    number: int
    look: Look


def _decision(row: LookRow) -> TableCell:
    badge = row.look.outcome if row.look.outcome in ("better", "worse") else ""
    return TableCell(row.look.outcome + (": stopped" if row.look.stops else ""), badge=badge)


LOOK_COLUMNS: list[Column[LookRow]] = [
    Column("variant", lambda row: TableCell(row.variant)),
    Column("look", lambda row: TableCell(str(row.number))),
    Column("seeds", lambda row: TableCell(str(row.look.seeds))),
    Column("level", lambda row: TableCell(f"{row.look.level:.2g}"), "of its test"),
    Column("difference", lambda row: difference(row.look.difference), "95 % over all looks"),
    Column(
        "chance",
        lambda row: EMPTY if math.isnan(row.look.chance) else TableCell(number(row.look.chance, 2)),
        "that all seeds would tell",
    ),
    Column("outcome", _decision, is_prose=True),
]


def looks_table(main: Comparison | None) -> Table | None:
    """A row a look; ``None`` where none was taken."""
    rows = [
        LookRow(contrast.variant, position, look)
        for contrast in (main.contrasts if main else [])
        for position, look in enumerate(contrast.looks, start=1)
    ]
    if not rows:
        return None
    caption = (
        "The 5 % of false verdicts are spent over the looks by Lan and DeMets' function of O'Brien–Fleming type. "
        "“Hopeless” does not bind: going on would not make the 5 % more."
    )
    return table_of("Looks", LOOK_COLUMNS, rows, caption)


def looks_sentence(runs: RecordedRuns, main: Comparison | None) -> str:
    """When was looked, which comparisons stopped at which look, and how many cells that saved; empty without looks."""
    if not runs.stopping or main is None:
        return ""
    planned = " and ".join(map(str, runs.stopping["looks"]))
    stopped = [
        f"{contrast.variant} at {contrast.looks[-1].seeds} seeds ({contrast.looks[-1].outcome})"
        for contrast in main.contrasts
        if contrast.looks and contrast.looks[-1].stops
    ]
    saved = sum(reason == NOT_NEEDED for reason in runs.unfinished.values())
    total = len(runs.all) + len(runs.unfinished)
    ends = f"Stopped early: {', '.join(stopped)}; {saved} of {total} cells were not run." if stopped else ""
    return f"Group-sequential: looks planned at {planned} seeds. {ends or 'No comparison was stopped early.'}"

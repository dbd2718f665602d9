"""How the variants' settings were chosen: tuned on equal budgets, or all at one learning rate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.comparison.reports.formats import count, number
from trainer.comparison.reports.run_files import RecordedRuns
from trainer.comparison.reports.tables import Column, Table, TableCell, table_of


@dataclass(frozen=True)
class TuningRow:
    """One variant's choice, as `sweeps.tuning` recorded it; ``runs`` is how many it was chosen from."""

    variant: str
    choice: Mapping[str, Any]
    runs: int


def _all_points(row: TuningRow) -> TableCell:
    return TableCell("; ".join(f"{point}: {number(mean)}" for point, mean in row.choice["accuracies"].items()))


TUNING: list[Column[TuningRow]] = [
    Column("variant", lambda row: TableCell(row.variant)),
    Column("chosen", lambda row: TableCell(row.choice["point"])),
    Column("accuracy", lambda row: TableCell(number(row.choice["accuracies"][row.choice["point"]])), "while tuning"),
    Column("all points", _all_points, is_prose=True),
    Column("runs", lambda row: TableCell(str(row.runs)), "while tuning"),
    Column("tokens", lambda row: TableCell(count(row.choice["tokens"])), "while tuning"),
    Column("device seconds", lambda row: TableCell(count(row.choice["device_seconds"])), "while tuning"),
]


def tuning_table(runs: RecordedRuns) -> Table | None:
    """One row a variant with what its tuning cost; ``None`` where nothing was tuned."""
    if not runs.tuning:
        return None
    rows = [
        TuningRow(name, choice, len(choice["accuracies"]) * len(runs.tuning["seeds"]))
        for name, choice in runs.tuning["chosen"].items()
    ]
    caption = (
        "Mean held-out accuracy over the tuning's seeds, on rows of the tuning's own. The best of several is too high "
        "by construction; the verdict rests on other seeds and other rows."
    )
    return table_of("Tuning", TUNING, rows, caption)


def tuning_sentence(runs: RecordedRuns) -> str:
    """Whether each variant was compared at its own best settings; empty for a single run or a lone variant."""
    compared = {variant for variant in runs.by_variant if runs.baseline.get(variant, variant) != variant}
    if not compared:
        return ""
    if runs.tuning:
        points = len(next(iter(runs.tuning["chosen"].values()))["accuracies"])
        tuned, seeds = ", ".join(runs.tuning["grid"]), runs.tuning["seeds"]
        return (
            f"Tuned: every variant stands at its own best of {points} points of {tuned}, chosen by "
            f"{points * len(seeds)} runs each (seeds {', '.join(map(str, seeds))}) and confirmed on fresh "
            "seeds and other held-out rows."
        )
    rates = {variant: _learning_rate(runs, variant) for variant in runs.by_variant}
    if any(rates[variant] != rates.get(runs.baseline[variant], rates[variant]) for variant in compared):
        return "Not tuned: variants differ in learning rate, and none of the rates was chosen by equal tuning."
    told = sorted({str(rate) for rate in rates.values() if rate is not None}, key=float)
    each = f"learning rate ({', '.join(told)})" if told else "learning rate (TRL’s default)"
    if len(told) > 1:
        each = f"learning rate at a time (each of {', '.join(told)})"
    return (
        f"Compared at a single {each}: what is best for one variant may not be for another. `tune:` in the sweep's "
        "file gives each its own."
    )


def _learning_rate(runs: RecordedRuns, variant: str) -> float | None:
    config = next(iter(runs.by_variant[variant].values())).raw_config
    rate = (config.get("trl") or {}).get("learning_rate")
    return None if rate is None else float(rate)

"""The runs behind the numbers: one row a cell of a sweep, or the run itself, with the way to its files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.comparison.reports.accuracies import final_accuracies, is_judged, mean_accuracies
from trainer.comparison.reports.formats import count, number
from trainer.comparison.reports.run_files import RecordedRun, RecordedRuns
from trainer.comparison.reports.tables import EMPTY, Column, Table, TableCell, table_of

CAPTION = (
    "Accuracy at the run's own last evaluation, over the items that it was judged on. Tokens are prompts and "
    "completions trained on; device seconds are wall time × processes, start-up and evaluations included."
)


@dataclass(frozen=True)
class CellRow:
    """One run; ``dataset`` is the held-out set, ``link`` the way to its files, both empty where there is none."""

    run: RecordedRun
    dataset: str
    link: str
    anchor: str


def _accuracy(row: CellRow) -> TableCell:
    if not row.dataset or not is_judged(row.run, row.dataset):
        return EMPTY
    return TableCell(number(float(mean_accuracies(final_accuracies([row.run], row.dataset))[0])))


CELLS: list[Column[CellRow]] = [
    Column("cell", lambda row: TableCell(f"{row.run.variant}-s{row.run.seed}", link=row.link)),
    Column("seed", lambda row: TableCell(str(row.run.seed))),
    Column("accuracy", _accuracy, "held-out, last"),
    Column("tokens", lambda row: TableCell(count(row.run.tokens))),
    Column("device seconds", lambda row: TableCell(count(row.run.device_seconds))),
    Column("optimizer steps", lambda row: TableCell(count(row.run.optimizer_steps))),
]


def cell_anchors(runs: RecordedRuns) -> Mapping[str, str]:
    """Variant → where its first cell stands in the page."""
    return {variant: f"#cells-{number}" for number, variant in enumerate(runs.by_variant)}


def cell_table(runs: RecordedRuns, dataset: str, directory: Path) -> Table:
    """Every finished run with its accuracy, what it cost, and a link to its directory."""
    anchors = cell_anchors(runs)
    rows = [
        CellRow(run, dataset, _link(run, directory), anchors[variant].removeprefix("#") if position == 0 else "")
        for variant, by_seed in runs.by_variant.items()
        for position, run in enumerate(by_seed.values())
    ]
    return table_of("Cells", CELLS, rows, CAPTION, anchor=lambda row: row.anchor)


def _link(run: RecordedRun, directory: Path) -> str:
    return "" if run.path == directory else f"{run.path.relative_to(directory).as_posix()}/"

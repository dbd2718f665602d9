"""The progress of a sweep's cells, from the files of their runs."""

from pathlib import Path
from typing import Any

from evenkeel.trainer.lab.reports.tables import Table, TableCell, table_of
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.run.record.files import read_record
from evenkeel.trainer.run.record.run_record import RunRecord

_HELD_OUT = "eval_verifier/accuracy"
"""Over all held-out sets."""


def status_table(root: Path, only: str | None = None) -> Table:
    """One row for each cell, or for ``only`` one: state, step, reward, held-out accuracy."""
    described = read_record(root / "sweep.json", dict[str, Any], "`evenkeel sweep run` writes it again.")
    rows, finished = [], 0
    cells = [cell for cell in described["cells"] if only in (None, cell["name"])]
    for cell in cells:
        directory = CellDirectory(root / cell["name"])
        rows.append(_cell_row(cell, directory))
        finished += bool(directory.summary())
    titles = ("cell", "state", "attempts", "step", "reward", "held-out accuracy")
    return table_of(described["name"], titles, rows, f"{finished} of {len(cells)} finished")


def _cell_row(cell: dict[str, Any], directory: CellDirectory) -> list[str | TableCell]:
    state = directory.state()
    lines = RunRecord(directory.run).metrics
    step = lines[-1]["step"] if lines else 0
    most = (cell.get("budget") or {}).get("optimizer_steps")
    rewards = [line["reward"] for line in lines if line.get("reward") is not None]
    held_out = [line[_HELD_OUT] for line in lines if line.get(_HELD_OUT) is not None]
    return [
        cell["name"],
        TableCell(state, badge=state),
        str(len(directory.attempts())),
        f"{step}/{most or '?'}",
        f"{rewards[-1]:.3f}" if rewards else "",
        f"{held_out[-1]:.3f}" if held_out else "",
    ]

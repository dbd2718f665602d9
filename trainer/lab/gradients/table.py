"""The results of the gradient bench as one table."""

import math

from evenkeel.trainer.lab.gradients.bench import Bench, Measured
from evenkeel.trainer.lab.gradients.jackknife import stated
from evenkeel.trainer.lab.reports.tables import Table, TableCell, table_of

COLUMNS = ("strategy", "cosine", "norm", "SNR", "alignment", "q1…q4", "steps")


def strategy_table(found: Bench) -> Table:
    """A row a strategy: the baseline, then the others by falling SNR, NaN last."""
    first, *rest = found.rows
    rest.sort(key=lambda row: math.inf if math.isnan(row.signal_to_noise) else -row.signal_to_noise)
    return table_of("By strategy", COLUMNS, [_cells(row) for row in (first, *rest)])


def _cells(row: Measured) -> list[str | TableCell]:
    """The numbers of a row, in the order of `COLUMNS`."""
    quarters = " ".join("–" if math.isnan(share) else f"{share:.2f}".lstrip("0") for share in row.quartiles)
    return [
        TableCell(row.name, is_code=True),
        _number(row.cosine, "+.3f"),
        _number(row.norm, ".3g"),
        _number(row.signal_to_noise, ".3g") + stated(row.signal_to_noise_margin),
        _number(row.alignment, "+.2f") + stated(row.alignment_margin),
        quarters,
        str(row.passes),
    ]


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"

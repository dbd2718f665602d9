"""The results of the gradient bench, and those of the figures, as a table each."""

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from evenkeel.trainer.lab.gradients.bench import Bench, Measured
from evenkeel.trainer.lab.gradients.figures import FigureRow, Figures
from evenkeel.trainer.lab.gradients.jackknife import stated
from evenkeel.trainer.lab.gradients.outcomes import SETS
from evenkeel.trainer.lab.gradients.strategies import BASELINE
from evenkeel.trainer.lab.reports.figures import Curve
from evenkeel.trainer.lab.reports.tables import Table, TableCell, table_of

COLUMNS = ("strategy", "cosine", "norm", "SNR", "alignment", "steps")


def strategy_table(found: Bench) -> Table:
    """A row a strategy: the baseline, then the others by falling SNR, NaN last."""
    first, *rest = found.rows
    rest.sort(key=lambda row: math.inf if math.isnan(row.signal_to_noise) else -row.signal_to_noise)
    return table_of("By strategy", COLUMNS, [_cells(row) for row in (first, *rest)])


def figures_table(found: Figures) -> Table:
    """Rows outcome by outcome; a strategy whose numbers all equal the baseline's has none there."""
    rows = []
    for row in found.rows:
        differs = any(abs(each) > 0 for each in row.differences)
        if differs or row.strategy == BASELINE:
            rows.append([*_figure_cells(row)])
    return table_of("Figures 1 and 3", ("figure", "outcome", "strategy", *SETS), rows)


def _figure_cells(row: FigureRow) -> Iterator[TableCell]:
    """For each token set the value and, of other strategies than the baseline, its difference in parentheses."""
    yield TableCell(row.figure)
    yield TableCell(row.outcome, is_code=True)
    yield TableCell(row.strategy, is_code=True)
    for place, value in enumerate(row.values):
        text = _number(value, ".3g") + stated(row.margins[place])
        gain = row.differences[place]
        if row.strategy == BASELINE or math.isnan(gain):
            yield TableCell(text)
        else:
            yield TableCell(text, f"({gain:+.2g}{stated(row.difference_margins[place])})")


def panels_of(found: Figures) -> dict[str, dict[str, Curve]]:
    """Figure and outcome → strategy → its values by quarter of π_old, from 1 to 4."""
    panels: dict[str, dict[str, Curve]] = defaultdict(dict)
    for row in found.rows:
        values, margins = np.array(row.values[1:]), np.array(row.margins[1:])
        curve = Curve(np.array([1.0, 2.0, 3.0, 4.0]), values, values - margins, values + margins)
        panels[f"{row.figure} {row.outcome}"][row.strategy] = curve
    return panels


def _cells(row: Measured) -> list[str | TableCell]:
    return [
        TableCell(row.name, is_code=True),
        _number(row.cosine, "+.3f"),
        _number(row.norm, ".3g"),
        _number(row.signal_to_noise, ".3g") + stated(row.signal_to_noise_margin),
        _number(row.alignment, "+.2f") + stated(row.alignment_margin),
        str(row.passes),
    ]


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"

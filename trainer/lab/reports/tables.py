"""Tables and numbers, the same in HTML, in Markdown and on a terminal."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from evenkeel.trainer.evaluation.shares import Estimate

NOTHING = "–"


@dataclass(frozen=True)
class TableCell:
    """The content of one row in one column.

    Attributes:
        note: small print after the text, such as the interval of a number.
        badge: a word of the text to highlight: an outcome of `trainer.lab.statistics.verdict`, or the state of a cell.
        is_code: whether the text is a name from a file, set as code.
    """

    text: str
    note: str = ""
    badge: str = ""
    is_code: bool = False


EMPTY = TableCell(NOTHING)
Cells = list[str | TableCell]
"""The cells of one row."""


@dataclass(frozen=True)
class Heading:
    """The head of a column; ``note`` is its small print, ``is_prose`` text that may be broken into lines."""

    title: str
    note: str = ""
    is_prose: bool = False


@dataclass(frozen=True)
class Table:
    """A table ready to be rendered."""

    title: str
    headings: list[Heading]
    rows: list[list[TableCell]]
    caption: str = ""


def table_of(
    title: str, headings: Sequence[str | Heading], rows: Sequence[Sequence[str | TableCell]], caption: str = ""
) -> Table:
    """A table of headings and cells, which may be given as plain text."""
    heads = [Heading(each) if isinstance(each, str) else each for each in headings]
    cells = [[TableCell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    return Table(title, heads, cells, caption)


def markdown_table(table: Table) -> str:
    """The table and its caption, without its title."""
    heads = [escaped(each.title) + (f" ({escaped(each.note)})" if each.note else "") for each in table.headings]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in table.rows:
        texts = []
        for cell in row:
            text = f"`{one_line(cell.text)}`" if cell.is_code else escaped(cell.text)
            texts.append(f"{text} {escaped(cell.note)}" if cell.note else text)
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join([*lines, *(["", escaped(table.caption)] if table.caption else [])])


def escaped(text: Any) -> str:
    """Text inside a cell of a Markdown table: on one line, without characters that would end the cell or start HTML."""
    return one_line(text).replace("<", "&lt;")


def one_line(text: Any) -> str:
    """Text on one line that ends neither the cell nor a code span."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("`", "'")


def print_table(table: Table) -> None:
    """Print a table with its title at the terminal's width, or wide enough for a file."""
    text = f"**{escaped(table.title)}**\n\n{markdown_table(table)}"
    Console(width=None if sys.stdout.isatty() else 120).print(Markdown(text))


def number(value: float | None, digits: int = 3) -> str:
    """A number with ``digits`` decimals; a dash for ``None`` and NaN."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.{digits}f}".replace("-", "−")


def signed(value: float) -> str:
    """A difference with its sign."""
    return number(value) if value < 0 else f"+{number(value)}"


def count(value: float | None) -> str:
    """A number of steps, tokens or seconds."""
    return NOTHING if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def interval(value: Estimate) -> str:
    """``[low, high]``; the two values of two seeds, whose interval says nothing; empty where they are NaN."""
    if value.num_seeds == 2:
        # for a variance of two values is half of their squared difference
        half = math.sqrt(value.seed_variance / 2)
        return f"two seeds: {number(value.value - half)}, {number(value.value + half)}"
    return "" if math.isnan(value.low) else f"[{number(value.low)}, {number(value.high)}]"


def p_value(value: float) -> str:
    """A p-value with three significant digits."""
    return NOTHING if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3g}"


def estimate(value: Estimate | None) -> TableCell:
    """A number with its interval."""
    return TableCell(number(value.value), interval(value)) if value else EMPTY


def difference(value: Estimate | None) -> TableCell:
    """A signed number with its interval."""
    return TableCell(signed(value.value), interval(value)) if value else EMPTY

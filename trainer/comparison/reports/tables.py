"""Tables of a report: a column is declared once, and every page renders the same table.

A column of your own is one entry in the list of its table:

    from trainer.comparison.reports.columns import ACCURACY
    from trainer.comparison.reports.tables import Column, TableCell

    ACCURACY.append(Column("items", lambda row: TableCell(str(row.numbers.final.num_items))))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from trainer.comparison.reports.formats import NOTHING

Row = TypeVar("Row")


@dataclass(frozen=True)
class TableCell:
    """What stands where a row and a column cross.

    Attributes:
        note: small print beside the text, such as the interval of a number.
        badge: the style in which the text is set off: an outcome of `trainer.statistics.verdict`, or a verdict's word.
        link: where the text leads: ``#…`` inside the page, else relative to the report's directory.
    """

    text: str
    note: str = ""
    badge: str = ""
    link: str = ""


EMPTY = TableCell(NOTHING)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column, for HTML and Markdown alike.

    Attributes:
        cell: what it says of a row.
        note: small print under the title; of the table's rows where it depends on them.
        is_shown: whether the rows give it anything to show; a column of dashes is none.
        is_prose: words that may be broken into lines, not a number.
    """

    title: str
    cell: Callable[[Row], TableCell]
    note: str | Callable[[Sequence[Row]], str] = ""
    is_shown: Callable[[Sequence[Row]], bool] = lambda rows: True
    is_prose: bool = False


@dataclass(frozen=True)
class Heading:
    """The head of a column; ``note`` is its small print."""

    title: str
    note: str
    is_prose: bool


@dataclass(frozen=True)
class Table:
    """A table ready to be rendered; ``anchors`` holds a row's id within the page, or nothing."""

    title: str
    headings: list[Heading]
    rows: list[list[TableCell]]
    anchors: list[str]
    caption: str


def table_of(
    title: str,
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    caption: str = "",
    anchor: Callable[[Row], str] = lambda row: "",
) -> Table:
    """The shown columns of at least one row."""
    shown = [column for column in columns if column.is_shown(rows)]
    headings = [
        Heading(column.title, column.note if isinstance(column.note, str) else column.note(rows), column.is_prose)
        for column in shown
    ]
    return Table(
        title,
        headings,
        [[column.cell(row) for column in shown] for row in rows],
        [anchor(row) for row in rows],
        caption,
    )

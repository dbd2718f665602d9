"""The table of built-in strategies as text for a terminal, or as Markdown; and the tables of signals."""

from typing import Literal

from trainer.algorithms.contract import ADVANTAGE, SIGNALS
from trainer.algorithms.registry import strategy_table

COLUMNS = ("kind", "name", "what", "source", "evidence")


def strategy_listing(form: Literal["plain", "markdown"] = "plain") -> str:
    """`strategy_table` as text: one line a strategy, by kind and name.

    ``plain`` aligns the columns and ends each with two spaces; ``markdown`` is a table whose code marks are single.
    """
    rows = [[row[column] for column in COLUMNS] for row in strategy_table()]
    if form == "markdown":
        cells = [[kind, f"`{name}`", *(_inline(text) for text in texts)] for kind, name, *texts in rows]
        lines = [list(COLUMNS), ["---"] * len(COLUMNS), *cells]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    widths = [max(len(line[index]) for line in (COLUMNS, *rows)) for index in range(len(COLUMNS))]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in (COLUMNS, *rows))
    return "\n".join("  ".join(line).rstrip() for line in padded)


def signal_listing() -> str:
    """`SIGNALS` as Markdown: a table for each kind of strategy that may name some."""
    tables = []
    for kind, signals in SIGNALS.items():
        if signals:
            article = "an" if kind == ADVANTAGE else "a"
            rows = [f"| `{name}` | {meaning} |" for name, meaning in signals.items()]
            tables.append(
                "\n".join([f"| signal of {article} {kind.replace('_', ' ')} | shape and meaning |", "|---|---|", *rows])
            )
    return "\n\n".join(tables)


def _inline(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|") or "–"

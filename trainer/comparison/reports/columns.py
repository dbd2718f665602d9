"""The columns of the tables that compare variants: each stands in one list, and in every page that shows the table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainer.comparison.reports.comparison import Comparison, VariantNumbers
from trainer.comparison.reports.contrasts import Contrast
from trainer.comparison.reports.formats import count, interval, number, p_value, signed
from trainer.comparison.reports.tables import EMPTY, Column, TableCell
from trainer.statistics import Estimate


@dataclass(frozen=True)
class VariantRow:
    """A variant with its numbers on one held-out set, and its contrast with the baseline where it has one.

    Attributes:
        is_sweep: false for the report of a single run.
        cells: the anchor of the variant's runs within the page.
    """

    comparison: Comparison
    numbers: VariantNumbers
    contrast: Contrast | None
    is_sweep: bool
    cells: str

    @property
    def against(self) -> Contrast:
        """The contrast of a row that has one."""
        assert self.contrast is not None
        return self.contrast


Rows = Sequence[VariantRow]


def estimate(value: Estimate | None) -> TableCell:
    """A number with its interval."""
    return TableCell(number(value.value), interval(value)) if value else EMPTY


def difference(value: Estimate | None) -> TableCell:
    """A signed number with its interval."""
    return TableCell(signed(value.value), interval(value)) if value else EMPTY


def _final(row: VariantRow) -> TableCell:
    final = row.numbers.final
    return TableCell(number(final.value), interval(final), link=row.cells)


def _time_to_threshold(row: VariantRow) -> TableCell:
    time = row.numbers.time_to_threshold
    return TableCell(count(time.rollouts), f"reached by {time.reached} of {time.total}") if time else EMPTY


def _tokens_to_threshold(row: VariantRow) -> TableCell:
    time = row.numbers.time_to_threshold
    return TableCell(count(time.tokens)) if time else EMPTY


def _cost(of: Callable[[VariantNumbers], float | None]) -> Callable[[VariantRow], TableCell]:
    """A mean over seeds; of a variant with a baseline as a multiple of the baseline's too."""

    def cell(row: VariantRow) -> TableCell:
        spent = of(row.numbers)
        if spent is None:
            return EMPTY
        by_name = {numbers.name: of(numbers) for numbers in row.comparison.variants}
        baseline = by_name[row.contrast.baseline] if row.contrast else None
        return TableCell(count(spent), f"× {spent / baseline:.2f}" if baseline else "")

    return cell


def _verdict(row: VariantRow) -> TableCell:
    if row.contrast is None:
        return TableCell("baseline", badge="baseline")
    verdict = row.contrast.verdict
    paired = "" if row.contrast.is_paired else f" ({row.contrast.compared})"
    return TableCell(verdict.sentence + paired, badge=verdict.outcome)


def _seeds_compared(row: VariantRow) -> TableCell:
    return TableCell(str(len(row.against.seeds)) if row.against.is_paired else row.against.compared)


def all_paired(rows: Rows) -> bool:
    """Whether every contrast of the rows is paired by seed."""
    return all(row.contrast.is_paired for row in rows if row.contrast)


def _if_paired(words: str) -> Callable[[Rows], str]:
    return lambda rows: f"paired, {words}" if all_paired(rows) else words


def _has_threshold(rows: Rows) -> bool:
    return rows[0].comparison.threshold is not None


def _threshold(rows: Rows) -> str:
    return f"held-out accuracy {number(rows[0].comparison.threshold)}"


NAME: Column[VariantRow] = Column("variant", lambda row: TableCell(row.numbers.name, link=row.cells))

VERDICTS: list[Column[VariantRow]] = [
    NAME,
    Column("final accuracy", _final, "mean, 95 %"),
    Column(
        "difference", lambda row: difference(row.contrast.difference) if row.contrast else EMPTY, _if_paired("95 %")
    ),
    Column("verdict", _verdict, is_prose=True),
]
"""Of every held-out set."""

ACCURACY: list[Column[VariantRow]] = [
    NAME,
    Column("seeds", lambda row: TableCell(str(len(row.numbers.seeds)))),
    Column("final accuracy", _final, "mean, 95 %"),
    Column("tokens", _cost(lambda numbers: numbers.tokens), "a run"),
    Column("device seconds", _cost(lambda numbers: numbers.device_seconds), "a run"),
    Column(
        "accuracy at equal tokens",
        lambda row: estimate(row.numbers.at_equal_tokens),
        lambda rows: f"at {count(rows[0].comparison.equal_tokens)}",
        is_shown=lambda rows: rows[0].comparison.equal_tokens is not None,
    ),
    Column("start", lambda row: TableCell(number(row.numbers.start.value)) if row.numbers.start else EMPTY),
    Column("best", lambda row: estimate(row.numbers.best)),
    Column("area under curve", lambda row: estimate(row.numbers.area), "normalised"),
    Column("rollout batches to threshold", _time_to_threshold, _threshold, is_shown=_has_threshold),
    Column("tokens to threshold", _tokens_to_threshold, _threshold, is_shown=_has_threshold),
]
"""Of the main held-out set: what every variant reached, and what it cost."""

DIFFERENCES: list[Column[VariantRow]] = [
    NAME,
    Column(
        "against",
        lambda row: TableCell(row.against.baseline),
        is_shown=lambda rows: len({row.against.baseline for row in rows}) > 1,
    ),
    Column("seeds", _seeds_compared),
    Column("difference", lambda row: difference(row.against.difference), _if_paired("95 %")),
    Column("p", lambda row: TableCell(p_value(row.against.p_value)), _if_paired("t")),
    Column("p, Holm", lambda row: TableCell(p_value(row.against.adjusted_p)), lambda rows: f"of {len(rows)}"),
    Column(
        "area",
        lambda row: difference(row.against.area),
        _if_paired("95 %"),
        is_shown=lambda rows: any(row.against.area for row in rows),
    ),
    Column("seeds needed", lambda row: TableCell(str(row.against.verdict.seeds_needed or "–")), "power 0.8"),
]
"""Of the main held-out set: every variant that has a baseline."""

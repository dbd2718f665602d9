"""The tables that compare variants, with the words below them that say how to read them."""

from collections.abc import Iterator, Sequence

from trainer.comparison.reports.cell_columns import cell_anchors
from trainer.comparison.reports.columns import ACCURACY, DIFFERENCES, VERDICTS, VariantRow, all_paired
from trainer.comparison.reports.comparison import Comparison
from trainer.comparison.reports.formats import number
from trainer.comparison.reports.run_files import RecordedRuns
from trainer.comparison.reports.tables import Table, table_of


def comparison_tables(runs: RecordedRuns, comparisons: Sequence[Comparison]) -> Iterator[tuple[str, Table]]:
    """Name → table: the verdicts, the numbers, the differences, and the verdicts on further held-out sets."""
    for position, found in enumerate(comparisons):
        rows = _rows(runs, found)
        compared = [row for row in rows if row.contrast]
        if position:
            yield f"held-out-{position}", table_of(f"Held-out set {found.dataset}", VERDICTS, rows)
            continue
        if compared:
            yield "verdicts", table_of("Verdict", VERDICTS, rows, _verdict_caption(rows))
        yield "accuracy", table_of("Accuracy and cost", ACCURACY, rows, _accuracy_caption(rows))
        if compared:
            title = "Differences from the baseline"
            yield "differences", table_of(title, DIFFERENCES, compared, _difference_caption(compared))


def _rows(runs: RecordedRuns, found: Comparison) -> list[VariantRow]:
    anchors = cell_anchors(runs)
    return [
        VariantRow(found, numbers, found.contrast_of(numbers.name), bool(runs.baseline), anchors[numbers.name])
        for numbers in found.variants
    ]


def _verdict_caption(rows: Sequence[VariantRow]) -> str:
    found = rows[0].comparison
    pairing = "paired by seed" + ("" if all_paired(rows) else " where seeds are in common")
    if items := found.contrasts[0].difference.num_items:
        pairing += f" and item ({items} items)"
    adjusted = ", adjusted for the looks," if any(contrast.looks for contrast in found.contrasts) else ""
    return (
        f"Difference of final held-out accuracy on {found.dataset}, {pairing}, with its 95 % interval{adjusted}. "
        "“Better” and “worse” are said only where the interval leaves out 0."
    )


def _accuracy_caption(rows: Sequence[VariantRow]) -> str:
    found, items = rows[0].comparison, rows[0].numbers.final.num_items
    words = [f"Held-out accuracy on {found.dataset}; a number leads to the runs behind it."]
    if rows[0].is_sweep:
        over = " and items (of one seed Wilson’s, over items)" if items else ""
        words.append(f"Means have t intervals over seeds{over}.")
        words.append(
            "Cost is a mean over seeds, × the baseline’s: tokens of prompts and completions, wall time × processes."
        )
    elif items:
        words.append(
            f"The interval is Wilson’s, over {items} items; another seed would have given another policy. "
            "Cost: tokens of prompts and completions, wall time × processes."
        )
    words.append("The best of several noisy evaluations is too high by construction.")
    if found.threshold is not None and not found.threshold_is_given:
        whose, mean = ("the baseline’s start", "mean ") if rows[0].is_sweep else ("the start", "")
        words.append(f"The threshold {number(found.threshold)} is {whose} and nine tenths of its {mean}gain.")
    if found.threshold is not None and rows[0].is_sweep:
        words.append("Times to it are medians over seeds; a dash says that the seed in the middle did not reach it.")
    return " ".join(words)


def _difference_caption(rows: Sequence[VariantRow]) -> str:
    words = (
        "The verdict rests on the interval of the difference alone. The interval and the p-values assume that the "
        "means of the seeds are about normally distributed."
    )
    if any(row.against.area for row in rows):
        words += " The area is the mean height of the learning curve: it shows which variant learns faster."
    return words

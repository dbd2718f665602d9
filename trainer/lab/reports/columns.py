"""The tables of a report, in the order of the page: for each its rows, its columns in a list, and its caption."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenkeel.trainer.evaluation.differences import verdict_of
from evenkeel.trainer.lab.reports.accuracies import final_accuracies, is_judged, mean_accuracies
from evenkeel.trainer.lab.reports.comparison import Comparison, VariantNumbers
from evenkeel.trainer.lab.reports.contrasts import Contrast
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.lab.reports.tables import (
    EMPTY,
    Column,
    Table,
    TableCell,
    count,
    difference,
    estimate,
    interval,
    number,
    p_value,
    plain_table,
    table_of,
)
from evenkeel.trainer.lab.reports.verifier_audit import Audit


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


Rows = Sequence[VariantRow]


def _final(row: VariantRow) -> TableCell:
    final = row.numbers.final
    return TableCell(number(final.value), interval(final), link=row.cells)


def _cost(of: Callable[[VariantNumbers], float | None]) -> Callable[[VariantRow], TableCell]:
    """A mean over seeds; for a variant with a baseline also as a multiple of the baseline's."""

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
    return TableCell(verdict.sentence, badge=verdict.outcome)


def _has_pairs(rows: Rows) -> bool:
    return any(row.contrast for row in rows)


NAME: Column[VariantRow] = Column("variant", lambda row: TableCell(row.numbers.name, link=row.cells))

VERDICTS: list[Column[VariantRow]] = [
    NAME,
    Column("final accuracy", _final, "mean, 95 %"),
    Column(
        "difference", lambda row: difference(row.contrast.difference) if row.contrast else EMPTY, "paired by seed, 95 %"
    ),
    Column("p", lambda row: TableCell(p_value(row.contrast.p_value)) if row.contrast else EMPTY, "t"),
    Column(
        "p, Holm",
        lambda row: TableCell(p_value(row.contrast.adjusted_p)) if row.contrast else EMPTY,
        lambda rows: f"of {len(rows[0].comparison.contrasts)}",
        is_shown=lambda rows: len(rows[0].comparison.contrasts) > 1,
    ),
    Column("verdict", _verdict, is_prose=True),
]
"""For every held-out set."""

ACCURACY: list[Column[VariantRow]] = [
    NAME,
    Column("seeds", lambda row: TableCell(str(len(row.numbers.seeds)))),
    Column("start", lambda row: TableCell(number(row.numbers.start.value)) if row.numbers.start else EMPTY),
    Column("final accuracy", _final, "mean, 95 %"),
    Column("tokens", _cost(lambda numbers: numbers.tokens), "a run"),
    Column("device seconds", _cost(lambda numbers: numbers.device_seconds), "a run"),
    Column(
        "accuracy at equal tokens",
        lambda row: estimate(row.numbers.at_equal_tokens),
        lambda rows: f"at {count(rows[0].comparison.equal_tokens)}",
        is_shown=lambda rows: rows[0].comparison.equal_tokens is not None,
    ),
    Column("area under curve", lambda row: estimate(row.numbers.area), "mean height"),
    Column(
        "area, difference",
        lambda row: difference(row.contrast.area) if row.contrast else EMPTY,
        "paired by seed, 95 %",
        is_shown=_has_pairs,
    ),
]
"""For the main held-out set: what every variant reached, and what it cost."""


def comparison_tables(runs: RecordedRuns, comparisons: Sequence[Comparison]) -> Iterator[tuple[str, Table]]:
    """Name → table: the verdicts, the numbers, and the verdicts on further held-out sets."""
    anchors = cell_anchors(runs)
    for position, found in enumerate(comparisons):
        rows = [
            VariantRow(found, numbers, found.contrast_of(numbers.name), bool(runs.baseline), anchors[numbers.name])
            for numbers in found.variants
        ]
        if position:
            yield f"held-out-{position}", table_of(f"Held-out set {found.dataset}", VERDICTS, rows)
            continue
        if _has_pairs(rows):
            yield "verdicts", table_of("Verdict", VERDICTS, rows, _verdict_caption(found))
        yield "accuracy", table_of("Accuracy and cost", ACCURACY, rows, _accuracy_caption(rows))


def _verdict_caption(found: Comparison) -> str:
    items = found.contrasts[0].difference.num_items
    pairing = "paired by seed" + (f" and item ({items} items)" if items else "")
    return (
        f"Difference of final held-out accuracy on {found.dataset}, {pairing}, with its 95 % interval. A "
        "variant is called better or worse only where the interval excludes 0. The interval and the p-values assume "
        "that the means of the seeds are about normally distributed."
    )


def _accuracy_caption(rows: Rows) -> str:
    found, items = rows[0].comparison, rows[0].numbers.final.num_items
    words = [f"Held-out accuracy on {found.dataset}; each number links to its runs."]
    if rows[0].is_sweep:
        over = " and items (with a single seed: Wilson’s interval over items)" if items else ""
        words.append(f"Means have t intervals over seeds{over}.")
        words.append(
            "Cost is the mean over seeds, and how many times the baseline’s it is: tokens of prompts and completions, "
            "wall time × processes. The area is the mean height of the learning curve: it shows which variant learns "
            "faster."
        )
    elif items:
        words.append(
            f"The interval is Wilson’s, over {items} items; another seed would have given another policy. "
            "Cost: tokens of prompts and completions, wall time × processes."
        )
    return " ".join(words)


def tuning_table(runs: RecordedRuns) -> Table | None:
    """One row a variant with the point that was chosen; ``None`` where nothing was tuned."""
    if not runs.tuning:
        return None
    rows = []
    for name, choice in runs.tuning["chosen"].items():
        points = "; ".join(f"{point}: {number(mean)}" for point, mean in choice["accuracies"].items())
        rows.append((name, choice["point"], number(choice["accuracies"][choice["point"]]), points))
    caption = (
        "Mean held-out accuracy over the seeds and the held-out rows used for tuning. The best of several is biased "
        "upwards; the verdict rests on other seeds and other rows."
    )
    return plain_table("Tuning", ("variant", "chosen", "accuracy while tuning", "all points"), rows, caption)


def tuning_sentence(runs: RecordedRuns) -> str:
    """Whether each variant was compared at its own best settings; empty for a single run or a lone variant."""
    compared = [variant for variant in runs.by_variant if runs.baseline_of(variant) is not None]
    if not compared:
        return ""
    if runs.tuning:
        points = len(next(iter(runs.tuning["chosen"].values()))["accuracies"])
        tuned, seeds = ", ".join(runs.tuning["grid"]), runs.tuning["seeds"]
        return (
            f"Tuned: every variant uses its own best of {points} points of {tuned}, chosen by "
            f"{points * len(seeds)} runs each (seeds {', '.join(map(str, seeds))}) and confirmed on fresh "
            "seeds and other held-out rows."
        )
    rates = {
        variant: (next(iter(by_seed.values())).raw_config.get("trl") or {}).get("learning_rate")
        for variant, by_seed in runs.by_variant.items()
    }
    if any(rates[variant] != rates.get(runs.baseline[variant], rates[variant]) for variant in compared):
        return "Not tuned: variants differ in learning rate, and the rates were not chosen by tuning on equal budgets."
    return (
        "Compared at a single learning rate: what is best for one variant may not be for another. `tune:` in the "
        "sweep's file chooses a rate for each variant."
    )


@dataclass(frozen=True)
class CellRow:
    """One run; ``dataset`` is the held-out set, ``link`` the path to its files, both empty where there is none."""

    run: RecordedRun
    dataset: str
    link: str
    anchor: str


def _cell_accuracy(row: CellRow) -> TableCell:
    if not row.dataset or not is_judged(row.run, row.dataset):
        return EMPTY
    return TableCell(number(float(mean_accuracies(final_accuracies([row.run], row.dataset))[0])))


CELLS: list[Column[CellRow]] = [
    Column("cell", lambda row: TableCell(f"{row.run.variant}-s{row.run.seed}", link=row.link)),
    Column("seed", lambda row: TableCell(str(row.run.seed))),
    Column("accuracy", _cell_accuracy, "held-out, last"),
    Column("tokens", lambda row: TableCell(count(row.run.tokens))),
    Column("device seconds", lambda row: TableCell(count(row.run.device_seconds))),
    Column("optimizer steps", lambda row: TableCell(count(row.run.optimizer_steps))),
]


def cell_anchors(runs: RecordedRuns) -> Mapping[str, str]:
    """Variant → the place of its first cell in the page."""
    return {variant: f"#cells-{number}" for number, variant in enumerate(runs.by_variant)}


def cell_table(runs: RecordedRuns, dataset: str, directory: Path) -> Table:
    """Every finished run with its accuracy, what it cost, and a link to its directory."""
    anchors = cell_anchors(runs)
    rows = [
        CellRow(
            run,
            dataset,
            "" if run.path == directory else f"{run.path.relative_to(directory).as_posix()}/",
            anchors[variant].removeprefix("#") if position == 0 else "",
        )
        for variant, by_seed in runs.by_variant.items()
        for position, run in enumerate(by_seed.values())
    ]
    caption = (
        "Accuracy at each run's own last evaluation, over the items with a verdict. Tokens are the prompts and "
        "completions trained on; device seconds are wall time × processes, start-up and evaluations included."
    )
    return table_of("Cells", CELLS, rows, caption, anchor=lambda row: row.anchor)


@dataclass(frozen=True)
class AuditRow:
    """One variant's audit."""

    variant: str
    audit: Audit


AUDIT: list[Column[AuditRow]] = [
    Column("variant", lambda row: TableCell(row.variant)),
    Column("completions", lambda row: TableCell(str(row.audit.completions))),
    Column("unscored", lambda row: TableCell(number(row.audit.frac_unjudged)), "no verdict"),
    Column("truncated", lambda row: TableCell(number(row.audit.frac_truncated)), "at the length limit"),
    Column(
        "verifier stopped",
        lambda row: TableCell(", ".join(f"{name} {share:.4f}" for name, share in row.audit.frac_killed.items()) or "0"),
        "at its limits, while training",
    ),
]

MOST_DIFFERENCES = 50


@dataclass(frozen=True)
class DifferenceRow:
    """A completion of which two verifiers say different things."""

    variant: str
    pair: tuple[str, str]
    record: Mapping[str, Any]

    def said(self, place: int) -> TableCell:
        """One verifier's verdict, and its reason."""
        name = self.pair[place]
        reason = str(self.record[f"{name}/reason"])[:200]
        return TableCell(f"{name}: {verdict_of(self.record, name)}", f"{self.record.get(f'{name}/answer')}; {reason}")


DIFFERENCES_OF_VERIFIERS: list[Column[DifferenceRow]] = [
    Column("variant", lambda row: TableCell(row.variant)),
    Column("item", lambda row: TableCell(str(row.record["item"]))),
    Column("reference", lambda row: TableCell(str(row.record.get("reference"))[:200], is_code=True), is_prose=True),
    Column("one", lambda row: row.said(0), "answer and reason", is_prose=True),
    Column("other", lambda row: row.said(1), "answer and reason", is_prose=True),
]


def differences_table(audits: Mapping[str, Audit]) -> Table | None:
    """One row a completion on which two verifiers differ; ``None`` where no two verifiers read answers."""
    counts, rows = [], []
    for name, audit in audits.items():
        for pair, records in audit.differences.items():
            counts.append(f"{name}: {' and '.join(pair)} on {len(records)} of {audit.completions} completions")
            rows += [DifferenceRow(name, pair, record) for record in records[:MOST_DIFFERENCES]]
    caption = f"Differences: {'; '.join(counts)}. At most {MOST_DIFFERENCES} of each are listed."
    return table_of("Where verifiers differ", DIFFERENCES_OF_VERIFIERS, rows, caption) if counts else None


def audit_table(audits: Mapping[str, Audit]) -> Table:
    """One row a variant."""
    rows = [AuditRow(name, audit) for name, audit in audits.items()]
    return table_of("Verifier audit", AUDIT, rows, "Shares of the completions of the last evaluations.")

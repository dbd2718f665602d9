"""The contents of a report, gathered from the files of a run or a sweep; `reports.page` renders them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evenkeel.trainer.lab.doctor.rules import Examination
from evenkeel.trainer.lab.reports.accuracies import accuracy_change
from evenkeel.trainer.lab.reports.comparison import Comparison, adjusted, comparison, datasets_of, scored_runs
from evenkeel.trainer.lab.reports.completions import SampleGroup, sample_groups
from evenkeel.trainer.lab.reports.notes import notes_of
from evenkeel.trainer.lab.reports.pictures import Picture, pictures_of
from evenkeel.trainer.lab.reports.provenance import changes_table, provenance_table, trained_table
from evenkeel.trainer.lab.reports.report_tables import (
    audit_table,
    cell_table,
    comparison_tables,
    differences_table,
    learned_table,
    tuning_sentence,
    tuning_table,
)
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns, read_runs
from evenkeel.trainer.lab.reports.tables import Table, interval, number, signed
from evenkeel.trainer.lab.reports.verifier_audit import Audit, verifier_audits


@dataclass(frozen=True)
class Report:
    """The contents of a page, in its order.

    Attributes:
        headline: the verdict in one sentence.
        conditions: a sentence on whether the variants were tuned; may be empty.
        comparisons: one for each held-out set; the headline is about the first.
        tables: by name, in the order of the page.
        scored: the runs shown in the pictures.
        doctor: what it finds in the log of a single run.
        notes: sentences on missing runs and on limits of the comparison.
    """

    name: str
    is_sweep: bool
    headline: str
    conditions: str
    comparisons: list[Comparison]
    tables: dict[str, Table]
    scored: RecordedRuns
    doctor: Examination
    samples: list[SampleGroup]
    audits: dict[str, Audit]
    notes: list[str]

    @property
    def main(self) -> Comparison | None:
        return self.comparisons[0] if self.comparisons else None

    @cached_property
    def pictures(self) -> dict[str, Picture]:
        """By name, in the order of the page; drawn on first use, in a second or two."""
        return {picture.name: picture for picture in pictures_of(self.scored, self.main)}

    @property
    def summary(self) -> str:
        """The picture that goes with the Markdown page, as SVG; may be empty."""
        first = next((self.pictures[name] for name in ("differences", "held_out") if name in self.pictures), None)
        return first.svgs[0] if first else ""


def report_on(directory: Path) -> Report:
    """Gather the report on a run's or a sweep's directory; a `Refusal` where there is nothing to report on."""
    runs = read_runs(directory)
    first, *others = datasets_of(runs) or [""]
    comparisons = [comparison(runs, first, runs.outcomes)] if first else []
    beside = {*runs.outcomes} & {"accuracy"}
    comparisons += [comparison(runs, dataset, beside) for dataset in others]
    comparisons = adjusted(comparisons)
    main = comparisons[0] if comparisons else None
    scored = scored_runs(runs, first) if main else runs
    audits = verifier_audits(runs, first)
    logged = [] if runs.baseline else runs.all[0].metrics
    return Report(
        runs.name,
        bool(runs.baseline),
        _headline(main, runs),
        tuning_sentence(runs) if main and main.contrasts else "",
        comparisons,
        {name: table for name, table in _tables(runs, comparisons, first, audits) if table is not None},
        scored,
        Examination().add_all((entry["step"], entry) for entry in logged),
        sample_groups(runs, first),
        audits,
        notes_of(runs, scored, comparisons, directory),
    )


def _tables(
    runs: RecordedRuns, comparisons: list[Comparison], dataset: str, audits: dict[str, Audit]
) -> Iterator[tuple[str, Table | None]]:
    if runs.baseline:
        yield from comparison_tables(comparisons)
        yield "tuning", tuning_table(runs)
        yield "cells", cell_table(runs, dataset)
        yield "changes", changes_table(runs)
    else:
        yield "trained", trained_table(runs.all[0])
        yield "learned", learned_table(runs.all[0])
    yield "audit", audit_table(audits)
    yield "verifiers-differ", differences_table(audits)
    yield "provenance", provenance_table(runs)


def _headline(main: Comparison | None, runs: RecordedRuns) -> str:
    if main is None:
        return "No held-out accuracy was recorded."
    if not runs.baseline:
        return _learned(runs.all[0], main)
    if not main.contrasts:
        return "No variant can be compared with its baseline yet."
    outcome = main.contrasts[0].outcome
    contrasts = main.contrasts_in(outcome)
    named: dict[str, list[str]] = {}
    for contrast in contrasts:
        named.setdefault(contrast.verdict.outcome, []).append(contrast.variant)
    order = ("better", "worse", "not distinguishable", "no verdict")
    words = "; ".join(f"{outcome}: {', '.join(named[outcome])}" for outcome in order if outcome in named)
    baselines = dict.fromkeys(contrast.baseline for contrast in contrasts)
    by = "" if outcome == "accuracy" else f", by {outcome}"
    return f"Against {', '.join(baselines)}{by}, {words}."


def _learned(run: RecordedRun, main: Comparison) -> str:
    """Accuracy before training and after; it rose or fell only where the interval of the change excludes 0."""
    start, final = main.variants[0].start, main.variants[0].final
    end = f"{number(final.value)} {interval(final)} after {max(run.held_out()[main.dataset]):g} optimizer steps"
    if start is None:
        return f"Held-out accuracy {end}; it was not measured both before training and after."
    if (change := accuracy_change(run, main.dataset)) is None:
        return f"Held-out accuracy {number(start.value)} before training, {end}."
    moved = "rose" if change.low > 0 else "fell" if change.high < 0 else "cannot be told to have changed"
    by = f"{signed(change.value)} {interval(change)}"
    return f"Held-out accuracy {moved}: {number(start.value)} before training, {end}, {by}."

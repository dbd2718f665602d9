"""What a report says, gathered from the files of a run or a sweep. How it looks is for `reports.page`."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trainer import statistics
from trainer.comparison.reports.comparison import Comparison, comparison, datasets_of, judged_runs
from trainer.comparison.reports.completions import SampleGroup, sample_groups
from trainer.comparison.reports.configuration import Change, configuration_changes
from trainer.comparison.reports.curves import diagnostic_curves, held_out_curves, training_curves
from trainer.comparison.reports.figures import (
    Bar,
    Curve,
    bars_figure,
    curves_figure,
    differences_figure,
    panels_figure,
    styles_of,
)
from trainer.comparison.reports.held_out import accuracy_table
from trainer.comparison.reports.provenance import provenance
from trainer.comparison.reports.run_files import RecordedRun, RecordedRuns, read_runs
from trainer.comparison.reports.verifier_audit import Audit, accuracy_by_length, final_records, verifier_audits
from trainer.statistics.verdict import FEWEST_SEEDS

MOST_BANDS = 4
"""So many bands in one picture can still be told apart."""


@dataclass(frozen=True)
class Picture:
    """A figure as SVG text, its title, and what to know when looking at it."""

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Report:
    """The contents of a page, in its order.

    Attributes:
        headline: the verdict in one sentence.
        secondary: who learned sooner or later, where the intervals of the areas under the curves say so; may be empty.
        comparisons: one for each held-out set; the first is the one that the headline speaks of.
        notes: what is missing or to be kept in mind.
    """

    name: str
    is_sweep: bool
    headline: str
    secondary: str
    comparisons: list[Comparison]
    pictures: dict[str, Picture]
    changes: dict[str, list[Change]]
    samples: list[SampleGroup]
    audits: dict[str, Audit]
    provenance: list[tuple[str, str]]
    notes: list[str]

    @property
    def main(self) -> Comparison | None:
        return self.comparisons[0] if self.comparisons else None


def report_on(directory: Path, threshold: float | None = None) -> Report:
    """Gather the report on a run's or a sweep's directory.

    Args:
        threshold: held-out accuracy to which runs are timed; otherwise the baseline's start and 0.9 of its gain.

    Raises:
        ReportError: there is nothing to report on.
    """
    runs = read_runs(directory)
    is_sweep = bool(runs.baseline)
    comparisons = [comparison(runs, dataset, threshold) for dataset in datasets_of(runs)]
    main = comparisons[0] if comparisons else None
    dataset = main.dataset if main else ""
    judged = judged_runs(runs, dataset) if main else runs
    return Report(
        runs.name,
        is_sweep,
        _headline(main, runs),
        _secondary(main),
        comparisons,
        {picture.name: picture for picture in _pictures(judged, main)},
        configuration_changes(runs),
        sample_groups(runs, dataset),
        verifier_audits(runs, dataset),
        provenance(runs),
        _notes(runs, judged, main, directory),
    )


def _headline(main: Comparison | None, runs: RecordedRuns) -> str:
    if main is None:
        return "No held-out accuracy was recorded, so there is nothing to judge by."
    if not runs.baseline:
        final, start = main.variants[0].final, main.variants[0].start
        seed = next(iter(main.variants[0].seeds))
        change = f", from {start.value:.3f}" if start else ""
        return f"Held-out accuracy {final.value:.3f}{change}, with seed {seed} alone: one seed gives no verdict."
    if not main.contrasts:
        return "There is no variant yet that can be compared with its baseline."
    named: dict[str, list[str]] = {}
    for contrast in main.contrasts:
        named.setdefault(contrast.verdict.outcome, []).append(contrast.variant)
    order = ("better", "worse", "not distinguishable", "no verdict")
    words = "; ".join(f"{outcome}: {', '.join(named[outcome])}" for outcome in order if outcome in named)
    return f"Against {', '.join(dict.fromkeys(contrast.baseline for contrast in main.contrasts))}, {words}."


def _secondary(main: Comparison | None) -> str:
    """The areas' intervals, named beside the verdict and no part of it: a second outcome, unadjusted, of seeds."""
    named: dict[str, list[str]] = {}
    for contrast in main.contrasts if main else []:
        outcome = statistics.verdict(contrast.area).outcome if contrast.area else "no verdict"
        named.setdefault(outcome, []).append(contrast.variant)
    words = [
        f"{word} than the baseline’s: {', '.join(named[outcome])}"
        for outcome, word in (("better", "higher"), ("worse", "lower"))
        if outcome in named
    ]
    if not words:
        return ""
    return (
        f"Secondary, unadjusted for several comparisons: area under the learning curve {'; '.join(words)} "
        "(95 % intervals over seeds that leave out 0). A higher area at a like final accuracy is to learn sooner."
    )


def _pictures(runs: RecordedRuns, main: Comparison | None) -> list[Picture]:
    styles = styles_of(list(runs.by_variant))
    most = max(len(by_seed) for by_seed in runs.by_variant.values())
    x = "rollout batches" if runs.baseline else "optimizer step"
    band = "One seed." if most == 1 else "Means over seeds."
    if most >= FEWEST_SEEDS:
        band = "Lines are means over seeds, bands 95 % t intervals of three seeds or more."
    found = []
    if main and main.contrasts:
        bars = {c.variant: Bar(c.difference.value, c.difference.low, c.difference.high) for c in main.contrasts}
        svg = differences_figure("differences", bars, "difference of held-out accuracy from the baseline", styles)
        pairing = (
            "Paired by seed and item" if all(c.is_paired for c in main.contrasts) else "Paired where seeds allow it"
        )
        caption = f"{pairing}, with 95 % intervals. A verdict is given where the interval leaves out 0."
        found.append(Picture("differences", "Differences from the baseline", caption, svg))
    if main and (curves := held_out_curves(runs, main.dataset)) and _has_curves(curves):
        found += _held_out_pictures(runs, main, curves, x, band)
    few = len(runs.by_variant) <= MOST_BANDS
    if rewards := training_curves(runs, "reward", band=few):
        svg = curves_figure("reward", rewards, x, "mean reward of the rollout batch", styles)
        found.append(Picture("reward", "Training reward", band if few else "Means over seeds.", svg))
    if main and (groups := _group_bars(runs, main.dataset)):
        svg = bars_figure("groups", groups, "level or subject", "held-out accuracy", styles)
        caption = "At the last evaluation, with 95 % intervals over seeds and items."
        found.append(Picture("groups", "By level or subject", caption, svg))
    panels, zero = diagnostic_curves(runs)
    if panels:
        svg = panels_figure("diagnostics", panels, x, styles)
        caption = "Means over seeds, as logged while training." + (f" 0 throughout: {'; '.join(zero)}." if zero else "")
        found.append(Picture("diagnostics", "Diagnostics", caption, svg))
    if main and (lengths := _length_bars(runs, main.dataset)):
        svg = bars_figure("length", lengths, "tokens of the completion", "share right", styles)
        caption = "Held-out completions in fifths by length, all variants and seeds, with Wilson's intervals."
        found.append(Picture("length", "Length against reward", caption, svg))
    return found


def _held_out_pictures(
    runs: RecordedRuns, main: Comparison, curves: dict[str, Curve], x: str, band: str
) -> list[Picture]:
    """All variants in one picture; where bands would hide one another, each with its baseline in one of its own."""
    styles, y = styles_of(list(runs.by_variant)), f"held-out accuracy, {main.dataset}"
    if len(curves) <= MOST_BANDS:
        return [Picture("held_out", "Held-out accuracy", band, curves_figure("held_out", curves, x, y, styles))]
    lines = {name: replace(curve, low=curve.low * np.nan, high=curve.high * np.nan) for name, curve in curves.items()}
    pairs = {
        contrast.variant: {name: curves[name] for name in (contrast.baseline, contrast.variant)}
        for contrast in main.contrasts
    }
    return [
        Picture("held_out", "Held-out accuracy", "Means over seeds.", curves_figure("held_out", lines, x, y, styles)),
        Picture(
            "held_out_pairs",
            "Held-out accuracy, each variant with its baseline",
            band,
            panels_figure("held_out_pairs", pairs, x, styles, same_height=True),
        ),
    ]


def _has_curves(curves: dict[str, Curve]) -> bool:
    return any(len(curve.points) > 1 for curve in curves.values())


def _group_bars(runs: RecordedRuns, dataset: str) -> dict[str, dict[str, Bar]]:
    return {
        name: bars for name, by_seed in runs.by_variant.items() if (bars := _bars_of(list(by_seed.values()), dataset))
    }


def _bars_of(runs: list[RecordedRun], dataset: str) -> dict[str, Bar]:
    answers = [run.final_answers(dataset) for run in runs]
    table, items = accuracy_table(answers)
    if table is None or answers[0] is None:
        return {}
    bars = {}
    for group, members in answers[0].groups.items():
        part = table[:, np.isin(items, members)]
        if not np.isnan(part).any(0).all():
            estimate = (
                statistics.mean_estimate(part)
                if len(part) > 1
                else statistics.share_estimate(part[0], sum(answers[0].judged_by_item[item] for item in members))
            )
            bars[group] = Bar(estimate.value, max(0.0, estimate.low), min(1.0, estimate.high))
    return bars


def _length_bars(runs: RecordedRuns, dataset: str) -> dict[str, dict[str, Bar]]:
    bars = accuracy_by_length(final_records(runs.all, dataset))
    return {next(iter(runs.by_variant)): bars} if len(bars) > 1 else {}


def _notes(runs: RecordedRuns, judged: RecordedRuns, main: Comparison | None, directory: Path) -> list[str]:
    notes = [
        f"Left out, {reason}: {', '.join(cell for cell, why in runs.unfinished.items() if why == reason)}."
        for reason in dict.fromkeys(runs.unfinished.values())
    ]
    if not runs.baseline and not runs.all[0].summary:
        notes.append("The run is not finished: it has no summary.json yet.")
    if main is None:
        return [*notes, "No held-out set was evaluated by all runs with any answer that could be judged."]
    if main.left_out:
        notes.append(
            f"Left out, not a single answer on {main.dataset} was judged: {', '.join(main.left_out)}. "
            "The audit says why."
        )
    notes += main.unpaired
    broken = [
        path for run in runs.all if (path := run.final_file(main.dataset)) and not run.final_answers(main.dataset)
    ]
    if broken:
        names = ", ".join(path.relative_to(directory).as_posix() for path in broken)
        notes.append(f"Files of completions that cannot be read: {names}. Their runs count by their logged accuracy.")
    if any(run.final_answers(main.dataset) is None for run in runs.all):
        notes.append(
            "Not all runs kept their per-item results (evaluations/*/step-*.parquet), so intervals rest on the seeds "
            "alone: they do not include what other items would have given. Samples and audit need these files too."
        )
    if any(len(run.held_out()[main.dataset]) < 3 for run in judged.all):
        notes.append(
            "Some runs were evaluated fewer than three times: areas under curves, best accuracies and times to the "
            "threshold are coarse. Write evaluation.every_steps for finer ones."
        )
    notes += _inequalities(judged, main.dataset)
    paired = [contrast for contrast in main.contrasts if contrast.is_paired]
    seeds = [len(contrast.seeds) for contrast in paired]
    if seeds and max(seeds) < 6:
        least = min(contrast.smallest_p for contrast in paired)
        notes.append(
            f"With {max(seeds)} pairs of seeds the sign-flip test cannot give a p below {least:.3g}: it can never be "
            "significant at 0.05. It assumes nothing; the interval assumes seeds' means that are about normal."
        )
    if len(main.contrasts) > 1:
        number = len(main.contrasts)
        notes.append(
            f"{number} comparisons: if no variant differed at all, about {0.05 * number:.2g} verdicts of "
            "better or worse would come out by chance. The p-values adjusted by Holm's method account for that."
        )
    return notes


def _inequalities(runs: RecordedRuns, dataset: str) -> list[str]:
    """What should have been the same in all runs and was not."""
    notes = []
    ends = sorted({max(run.held_out()[dataset]) for run in runs.all})
    if len(ends) > 1:
        notes.append(
            f"Runs were last evaluated after {', '.join(f'{end:g}' for end in ends)} rollout batches: their final "
            "accuracies do not compare equal amounts of training."
        )
    prints = [run.manifest.get("data_fingerprints") or {} for run in runs.all]
    held_out = [{part: value for part, value in found.items() if part != "train"} for found in prints]
    if any(found != held_out[0] for found in held_out):
        notes.append("Runs were evaluated on different held-out rows: items do not pair; do not trust the differences.")
    return notes

"""The pictures of a report, with their captions."""

from dataclasses import dataclass, replace

import numpy as np

from evenkeel.trainer.lab.reports.accuracies import accuracy_estimate
from evenkeel.trainer.lab.reports.comparison import Comparison
from evenkeel.trainer.lab.reports.curves import (
    PHASES,
    diagnostic_curves,
    held_out_curves,
    step_times,
    training_curves,
)
from evenkeel.trainer.lab.reports.figures import (
    Curve,
    curves_figure,
    differences_figure,
    intervals_figure,
    panel_figures,
    stack_figures,
    styles_of,
)
from evenkeel.trainer.lab.reports.held_out import accuracy_table
from evenkeel.trainer.lab.reports.run_files import RecordedRun, RecordedRuns
from evenkeel.trainer.lab.reports.verifier_audit import accuracy_by_length, final_records
from evenkeel.trainer.lab.statistics import Estimate
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS

MOST_BANDS = 3
"""With more bands one picture cannot be read."""
FINAL, AREA = "final accuracy, difference", "area under the curve, difference"


@dataclass(frozen=True)
class Picture:
    """A figure as SVG texts shown side by side, with its title and caption."""

    name: str
    title: str
    caption: str
    svgs: tuple[str, ...]


def pictures_of(runs: RecordedRuns, main: Comparison | None) -> list[Picture]:
    """All pictures that there are numbers for, in the order of the page."""
    styles = styles_of(list(runs.by_variant))
    x = "rollout batches" if runs.baseline else "optimizer step"
    found = []
    if main and main.contrasts:
        svg = differences_figure("differences", {FINAL: _differences(main)[FINAL]}, styles)
        paired = all(contrast.is_paired for contrast in main.contrasts)
        pairing = "Paired by seed and item" if paired else "Paired where seeds allow it"
        caption = f"{pairing}, with 95 % intervals. A variant is better or worse where its interval excludes 0."
        found.append(Picture("differences", "Differences from the baseline", caption, (svg,)))
    if main and (curves := held_out_curves(runs, main.dataset)) and _has_curves(curves):
        found += _held_out_pictures(runs, main, curves, x, _band(runs))
    few = len(runs.by_variant) <= MOST_BANDS
    if rewards := training_curves(runs, "reward", band=few):
        svg = curves_figure("reward", rewards, x, "mean reward of the rollout batch", styles)
        found.append(Picture("reward", "Training reward", _band(runs) if few else "Means over seeds.", (svg,)))
    if main and (groups := _group_accuracies(runs, main.dataset)):
        svg = intervals_figure("groups", groups, "held-out accuracy", "level or subject", styles)
        caption = "At the last evaluation, with 95 % intervals over seeds and items."
        found.append(Picture("groups", "By level or subject", caption, (svg,)))
    panels, zero = diagnostic_curves(runs)
    if panels:
        svgs = panel_figures("diagnostics", panels, x, styles)
        caption = "Means over seeds, as logged while training." + (f" 0 throughout: {'; '.join(zero)}." if zero else "")
        found.append(Picture("diagnostics", "Diagnostics", caption, tuple(svgs)))
    if times := step_times(runs):
        svgs = stack_figures("times", times, x, "seconds a step", list(PHASES.values()))
        caption = (
            "Wall time of an optimizer step on the logging process, means over seeds, without evaluations and "
            "checkpoints. The dashed line is all judging; the part without a wait overlaps with scoring."
        )
        found.append(Picture("times", "Where the time goes", caption, tuple(svgs)))
    if main and (lengths := _length_accuracies(runs, main.dataset)):
        svg = intervals_figure("length", lengths, "share right", "tokens of the completion", styles)
        caption = "Held-out completions in fifths by length, all variants and seeds, with Wilson's intervals."
        found.append(Picture("length", "Length against reward", caption, (svg,)))
    return found


def summary_svg(runs: RecordedRuns, main: Comparison | None) -> str:
    """The picture of the Markdown page: a sweep's differences, or a run's held-out accuracy; empty without either.

    On white, since it is shown without the style sheet of a page.
    """
    styles = styles_of(list(runs.by_variant))
    if main and main.contrasts:
        panels = {quantity: panel for quantity, panel in _differences(main).items() if panel}
        return differences_figure("summary", panels, styles, background="white")
    if main and (curves := held_out_curves(runs, main.dataset)) and _has_curves(curves):
        y = f"held-out accuracy, {main.dataset}"
        return curves_figure("summary", curves, "optimizer step", y, styles, background="white")
    return ""


def _differences(main: Comparison) -> dict[str, dict[str, Estimate]]:
    return {
        FINAL: {contrast.variant: contrast.difference for contrast in main.contrasts},
        AREA: {contrast.variant: contrast.area for contrast in main.contrasts if contrast.area},
    }


def _band(runs: RecordedRuns) -> str:
    most = max(len(by_seed) for by_seed in runs.by_variant.values())
    if most < FEWEST_SEEDS:
        return "One seed." if most == 1 else "Means over seeds."
    return (
        "Lines are means over seeds, bands 95 % t intervals of three seeds or more; "
        "the height of the picture fits the lines, so a wide band may be cut off at its edge."
    )


def _held_out_pictures(
    runs: RecordedRuns, main: Comparison, curves: dict[str, Curve], x: str, band: str
) -> list[Picture]:
    """All variants in one picture; where bands would hide one another, each with its baseline in one of its own."""
    styles, y = styles_of(list(runs.by_variant)), f"held-out accuracy, {main.dataset}"
    if len(curves) <= MOST_BANDS:
        return [Picture("held_out", "Held-out accuracy", band, (curves_figure("held_out", curves, x, y, styles),))]
    lines = {name: replace(curve, low=curve.low * np.nan, high=curve.high * np.nan) for name, curve in curves.items()}
    pairs = {
        contrast.variant: {name: curves[name] for name in (contrast.baseline, contrast.variant)}
        for contrast in main.contrasts
    }
    alone = curves_figure("held_out", lines, x, y, styles)
    paired = panel_figures("held_out_pairs", pairs, x, styles, same_height=True)
    return [
        Picture("held_out", "Held-out accuracy", "Means over seeds.", (alone,)),
        Picture("held_out_pairs", "Held-out accuracy, each variant with its baseline", band, tuple(paired)),
    ]


def _has_curves(curves: dict[str, Curve]) -> bool:
    return any(len(curve.points) > 1 for curve in curves.values())


def _group_accuracies(runs: RecordedRuns, dataset: str) -> dict[str, dict[str, Estimate]]:
    return {
        name: found
        for name, by_seed in runs.by_variant.items()
        if (found := _accuracy_by_group(list(by_seed.values()), dataset))
    }


def _accuracy_by_group(runs: list[RecordedRun], dataset: str) -> dict[str, Estimate]:
    answers = [run.final_answers(dataset) for run in runs]
    table, items = accuracy_table(answers)
    if table is None or answers[0] is None:
        return {}
    found = {}
    for group, members in answers[0].groups.items():
        of_group = table[:, np.isin(items, members)]
        if not np.isnan(of_group).any(0).all():
            found[group] = accuracy_estimate(of_group, sum(answers[0].judged_by_item[item] for item in members))
    return found


def _length_accuracies(runs: RecordedRuns, dataset: str) -> dict[str, dict[str, Estimate]]:
    found = accuracy_by_length(final_records(runs.all, dataset))
    return {next(iter(runs.by_variant)): found} if len(found) > 1 else {}

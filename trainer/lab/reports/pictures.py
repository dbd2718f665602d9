"""The pictures of a report, with their captions."""

from dataclasses import dataclass

from evenkeel.trainer.lab.reports.comparison import Comparison
from evenkeel.trainer.lab.reports.curves import diagnostic_curves, held_out_curves, training_curves, without_band
from evenkeel.trainer.lab.reports.figures import Curve, curves_figure, differences_figure, panel_figures, styles_of
from evenkeel.trainer.lab.reports.run_files import RecordedRuns
from evenkeel.trainer.lab.statistics import Estimate
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS

MOST_BANDS = 3
"""With more bands one picture cannot be read."""
FINAL = "final accuracy, difference"


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
    few = len(runs.by_variant) <= MOST_BANDS
    found = []
    if main and main.contrasts:
        svg = differences_figure("differences", _differences(main), FINAL, styles)
        caption = "Paired by seed, with 95 % intervals. A variant is better or worse where its interval excludes 0."
        found.append(Picture("differences", "Differences from the baseline", caption, (svg,)))
    if main and (curves := held_out_curves(runs, main.dataset)) and _has_curves(curves):
        lines = curves if few else {name: without_band(curve) for name, curve in curves.items()}
        svg = curves_figure("held_out", lines, x, f"held-out accuracy, {main.dataset}", styles)
        found.append(Picture("held_out", "Held-out accuracy", _band(runs) if few else "Means over seeds.", (svg,)))
    if rewards := training_curves(runs, "reward", band=few):
        svg = curves_figure("reward", rewards, x, "mean reward of the rollout batch", styles)
        found.append(Picture("reward", "Training reward", _band(runs) if few else "Means over seeds.", (svg,)))
    panels, zero = diagnostic_curves(runs)
    if panels:
        svgs = panel_figures("diagnostics", panels, x, styles)
        caption = "Means over seeds, as logged while training." + (f" 0 throughout: {'; '.join(zero)}." if zero else "")
        found.append(Picture("diagnostics", "Diagnostics", caption, tuple(svgs)))
    return found


def summary_svg(runs: RecordedRuns, main: Comparison | None) -> str:
    """The picture of the Markdown page: a sweep's differences, or a run's held-out accuracy; empty without either.

    On white, since it is shown without the style sheet of a page.
    """
    styles = styles_of(list(runs.by_variant))
    if main and main.contrasts:
        return differences_figure("summary", _differences(main), FINAL, styles, background="white")
    if main and (curves := held_out_curves(runs, main.dataset)) and _has_curves(curves):
        y = f"held-out accuracy, {main.dataset}"
        return curves_figure("summary", curves, "optimizer step", y, styles, background="white")
    return ""


def _differences(main: Comparison) -> dict[str, Estimate]:
    return {contrast.variant: contrast.difference for contrast in main.contrasts}


def _band(runs: RecordedRuns) -> str:
    most = max(len(by_seed) for by_seed in runs.by_variant.values())
    if most < FEWEST_SEEDS:
        return "One seed." if most == 1 else "Means over seeds."
    return (
        "Lines are means over seeds, bands 95 % t intervals of three seeds or more; "
        "the height of the picture fits the lines, so a wide band may be cut off at its edge."
    )


def _has_curves(curves: dict[str, Curve]) -> bool:
    return any(len(curve.points) > 1 for curve in curves.values())

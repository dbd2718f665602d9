"""The pictures of a report, with their captions."""

from dataclasses import dataclass

from evenkeel.trainer.lab.reports.comparison import Comparison
from evenkeel.trainer.lab.reports.curves import diagnostic_curves, held_out_curves, training_curves
from evenkeel.trainer.lab.reports.figures import curves_figure, differences_figure, panel_figures
from evenkeel.trainer.lab.reports.run_files import RecordedRuns

MOST_BANDS = 3
"""With more bands a picture is unreadable."""
CAPTION = "Means over seeds; bands are 95 % t intervals of three seeds or more."


@dataclass(frozen=True)
class Picture:
    """A figure as SVG texts shown side by side, with its title and caption."""

    name: str
    title: str
    caption: str
    svgs: tuple[str, ...]


def pictures_of(runs: RecordedRuns, main: Comparison | None) -> list[Picture]:
    """All pictures that have data, in the order of the page."""
    # the same in all pictures
    styles = {name: number for number, name in enumerate(runs.by_variant)}
    x = "rollout batches" if runs.baseline else "optimizer step"
    over = CAPTION if runs.baseline else "Step 0 is before training. Reward is that of the rows trained on."
    few = len(runs.by_variant) <= MOST_BANDS
    found = []
    if main and (contrasts := main.contrasts_in("accuracy")):
        differences = {contrast.variant: contrast.difference for contrast in contrasts}
        svg = differences_figure("differences", differences, "final accuracy, difference", styles)
        caption = "Paired by seed, with 95 % intervals of three seeds or more. Better or worse is what excludes 0."
        found.append(Picture("differences", "Differences from the baseline", caption, (svg,)))
    curves = held_out_curves(runs, main.dataset, band=few) if main else {}
    if main and any(len(curve.points) > 1 for curve in curves.values()):
        svg = curves_figure("held_out", curves, x, f"held-out accuracy, {main.dataset}", styles)
        found.append(Picture("held_out", "Held-out accuracy", over, (svg,)))
    if rewards := training_curves(runs, "reward", band=few):
        svg = curves_figure("reward", rewards, x, "mean reward of the rollout batch", styles)
        found.append(Picture("reward", "Training reward", over, (svg,)))
    if panels := diagnostic_curves(runs):
        svgs = panel_figures("diagnostics", panels, x, styles)
        found.append(Picture("diagnostics", "Diagnostics", "As logged.", tuple(svgs)))
    return found

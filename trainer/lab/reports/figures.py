"""The report's pictures, as SVG text to put into a page. Nothing is computed here.

Colors are Okabe and Ito's (2008), which color-blind readers can distinguish; each variant has its own line style and
marker, so that a page printed in gray can be read. Pictures are narrow enough for a phone without scaling; a wide page
puts them side by side. Legends are outside the axes.
"""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.statistics.intervals import Floats
from evenkeel.trainer.lab.statistics.verdict import FEWEST_SEEDS

INK, SOFT, LINE = "#000000", "#666666", "#e4e4e4"
COLORS = (INK, "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH, PANEL_WIDTH = 4.7, 3.1
"""Inches; 4.7 are 451 pixels of a page."""
SETTINGS = {
    "text.parse_math": False,  # names are text: a variant may be called a$b$c
    "svg.fonttype": "none",  # text stays text: found by a search, read aloud, sharp in print
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.grid": True,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
}


@dataclass(frozen=True)
class Curve:
    """One variant's mean over seeds at ``points`` (P,), with its interval; ``low`` and ``high`` may be NaN."""

    points: Floats
    mean: Floats
    low: Floats
    high: Floats


def curves_figure(name: str, curves: Mapping[str, Curve], x: str, y: str, styles: Mapping[str, int]) -> str:
    """Lines with bands; up to 12 points get markers. The legend is below."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 3.1 + 0.2 * -(-len(curves) // 2)), layout="constrained")
        axes = figure.subplots()
        entries = _draw_curves(axes, curves, styles)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if len(entries) > 1:
            figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False)
        return _svg(figure, name)


def panel_figures(name: str, panels: Mapping[str, Mapping[str, Curve]], x: str, styles: Mapping[str, int]) -> list[str]:
    """Small curves, a picture each, and their legend as the last one."""
    drawn: list[str] = []
    entries: dict[str, Any] = {}
    with matplotlib.rc_context({**SETTINGS, "lines.linewidth": 1.2, "lines.markersize": 2.5}):
        for number, (title, curves) in enumerate(panels.items()):
            figure = Figure(figsize=(PANEL_WIDTH, 2.25), layout="constrained")
            axes = figure.subplots()
            entries |= _draw_curves(axes, curves, styles)
            axes.set_title(title, fontsize=9.5, loc="left")
            axes.set_xlabel(x)
            drawn.append(_svg(figure, f"{name}-{number}"))
        if len(entries) > 1:
            figure = Figure(figsize=(WIDTH, 0.1 + 0.22 * -(-len(entries) // 2)))
            figure.legend(entries.values(), entries.keys(), loc="center", ncols=2, frameon=False)
            drawn.append(_svg(figure, f"{name}-legend"))
        return drawn


def joint_figure(name: str, panels: Mapping[str, Mapping[str, Curve]], x: str) -> str:
    """Small curves, three in a line of one picture, with their legend below."""
    lines = -(-len(panels) // 3)
    entries: dict[str, Any] = {}
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(3 * PANEL_WIDTH, 2.25 * lines), layout="constrained")
        for place, (title, curves) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(lines, 3, place, title=title, xlabel=x)
            entries |= _draw_curves(axes, curves, {label: number for number, label in enumerate(curves)})
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=4, frameon=False)
        return _svg(figure, name)


def differences_figure(name: str, differences: Mapping[str, Estimate], x: str, styles: Mapping[str, int]) -> str:
    """Variant → its difference, with an interval each where there are three seeds; the baseline is at 0."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, 0.85 + 0.36 * len(differences)), layout="constrained")
        axes = figure.subplots()
        axes.axvline(0, color=SOFT, linewidth=1)
        for row, (label, interval) in enumerate(differences.items()):
            color, _, marker = _style(styles[label])
            if interval.num_seeds >= FEWEST_SEEDS:
                axes.plot([interval.low, interval.high], [row, row], color=color, linewidth=2, solid_capstyle="butt")
            axes.plot([interval.value], [row], color=color, linewidth=0, marker=marker, markersize=6)
        axes.set_yticks(range(len(differences)), [label.replace(",", ",\n") for label in differences])
        axes.set_ylim(len(differences) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(x)
        return _svg(figure, name)


def _draw_curves(axes: Any, curves: Mapping[str, Curve], styles: Mapping[str, int]) -> dict[str, Any]:
    """Label → line for the legend, which is given both: Matplotlib leaves out labels of lines that begin with _."""
    lines = {}
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for label, curve in curves.items():
        number = styles[label]
        color, line, marker = _style(number)
        few = len(curve.points) <= 12
        (lines[label],) = axes.plot(
            curve.points,
            curve.mean,
            color=color,
            linestyle=line,
            marker=marker if few else None,
            zorder=3 if number else 4,  # over all bands, and the baseline over all
        )
        if not np.isnan(curve.low).all():
            axes.fill_between(curve.points, curve.low, curve.high, color=color, alpha=0.12, linewidth=0, zorder=1)
    return lines


def _style(number: int) -> tuple[str, Any, str]:
    """Color, line and marker: of seven variants each its own; further ones repeat colors with another line."""
    place = (number + number // len(LINES)) % len(LINES)
    return COLORS[number % len(COLORS)], LINES[place], MARKERS[place]


def _svg(figure: Figure, name: str) -> str:
    """SVG without a prologue, the same on every run, its ids made unique within the page by ``name``."""
    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)

"""The report's pictures, as SVG text to put into a page. Numbers come in as arrays; nothing is computed here.

Colours are Okabe and Ito's (2008), which colour-blind readers tell apart; each variant has a line style and a marker of
its own besides, so that a page printed in grey can be read. Legends stand outside the data.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SETTINGS = {
    "text.parse_math": False,  # names are text: a variant may be called a$b$c
    "svg.fonttype": "none",  # text stays text: found by a search, read aloud, sharp in print
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "grid.color": "#e4e4e4",
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


@dataclass(frozen=True)
class Bar:
    """A value with its interval, which may be NaN."""

    value: float
    low: float
    high: float


def curves_figure(name: str, curves: Mapping[str, Curve], x: str, y: str, styles: Mapping[str, int]) -> str:
    """Lines with bands; a point alone gets a marker. The legend stands at the right."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(7.4, 3.5), layout="constrained")
        axes = figure.subplots()
        entries = _draw_curves(axes, curves, styles)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if len(entries) > 1:
            figure.legend(entries.values(), entries.keys(), loc="outside right upper", frameon=False)
        return _svg(figure, name)


def panels_figure(
    name: str,
    panels: Mapping[str, Mapping[str, Curve]],
    x: str,
    styles: Mapping[str, int],
    *,
    same_height: bool = False,
) -> str:
    """Small curves side by side, three in a row, one legend below; ``same_height`` where all show the same quantity."""
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context({**SETTINGS, "lines.linewidth": 1.2, "lines.markersize": 2.5}):
        figure = Figure(figsize=(9.2, 2.05 * rows + 0.5), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=same_height)
        entries: dict[str, Any] = {}
        for axes, (title, curves) in zip(grid.flat, panels.items(), strict=False):
            entries |= _draw_curves(axes, curves, styles)
            axes.set_title(title, fontsize=9, loc="left")
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for column in range(columns):
            lowest = max(row for row in range(rows) if row * columns + column < len(panels))
            grid[lowest, column].set_xlabel(x)
        if len(entries) > 1:
            figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=4, frameon=False)
        return _svg(figure, name)


def differences_figure(name: str, differences: Mapping[str, Bar], x: str, styles: Mapping[str, int]) -> str:
    """One interval a variant around its difference; 0 is where the baseline stands."""
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(7.4, 0.85 + 0.36 * len(differences)), layout="constrained")
        axes = figure.subplots()
        axes.axvline(0, color="#666666", linewidth=1)
        for row, (label, bar) in enumerate(differences.items()):
            style: dict[str, Any] = {"color": _colour(styles[label]), "linewidth": 2}
            axes.plot([bar.low, bar.high], [row, row], solid_capstyle="butt", **style)
            axes.plot([bar.value], [row], marker=_marker(styles[label]), markersize=6, **style)
        axes.set_yticks(range(len(differences)), list(differences))
        axes.set_ylim(len(differences) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(x)
        return _svg(figure, name)


def bars_figure(name: str, bars: Mapping[str, Mapping[str, Bar]], x: str, y: str, styles: Mapping[str, int]) -> str:
    """Grouped bars with intervals: variant → group → value. The legend stands at the right."""
    groups = list(dict.fromkeys(group for values in bars.values() for group in values))
    width = 0.8 / len(bars)
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(9.2, 3.2), layout="constrained")
        axes = figure.subplots()
        entries: dict[str, Any] = {}
        for position, (label, values) in enumerate(bars.items()):
            at = [groups.index(group) + (position + 0.5) * width - 0.4 for group in values]
            heights = np.array([bar.value for bar in values.values()])
            spread = np.array([[bar.value - bar.low, bar.high - bar.value] for bar in values.values()]).T
            entries[label] = axes.bar(at, heights, width * 0.9, color=_colour(styles[label]), alpha=0.75)
            axes.errorbar(at, heights, np.nan_to_num(spread), fmt="none", ecolor="#333333", elinewidth=0.9)
        axes.set_xticks(range(len(groups)), groups)
        axes.grid(axis="x", visible=False)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if len(bars) > 1:
            figure.legend(entries.values(), entries.keys(), loc="outside right upper", frameon=False)
        return _svg(figure, name)


def _draw_curves(axes: Any, curves: Mapping[str, Curve], styles: Mapping[str, int]) -> dict[str, Any]:
    """Label → line, for the legend: given to it as they are, since Matplotlib leaves out labels that begin with _."""
    lines = {}
    for label, curve in curves.items():
        number = styles[label]
        few = len(curve.points) <= 12
        (lines[label],) = axes.plot(
            curve.points,
            curve.mean,
            color=_colour(number),
            linestyle=LINES[number % len(LINES)],
            marker=_marker(number) if few else None,
        )
        if not np.isnan(curve.low).all():
            axes.fill_between(curve.points, curve.low, curve.high, color=_colour(number), alpha=0.13, linewidth=0)
    return lines


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _marker(number: int) -> str:
    """Seven variants have one each; further ones go through the same again with another."""
    return MARKERS[(number + number // len(MARKERS)) % len(MARKERS)]


def _svg(figure: Figure, name: str) -> str:
    """SVG without a prologue, the same on every run, its ids made unique within the page by ``name``."""
    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)


def styles_of(variants: Sequence[str]) -> dict[str, int]:
    """Each variant's number, by which all pictures of a page draw it alike."""
    return {name: number for number, name in enumerate(variants)}

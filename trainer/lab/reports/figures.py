"""The report's pictures, as SVG text to put into a page. Numbers come in as arrays; nothing is computed here.

Colours are Okabe and Ito's (2008), which colour-blind readers tell apart; each variant has a line style and a marker of
its own besides, so that a page printed in grey can be read. Pictures are as narrow as a phone allows, so that their
words keep their size there; a wide page puts them side by side. Legends are outside the axes.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from evenkeel.trainer.lab.statistics import Estimate

Floats = NDArray[np.float64]

INK, SOFT, LINE = "#000000", "#666666", "#e4e4e4"
COLOURS = (INK, "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STACK_COLOURS = (*COLOURS[1:], "#9a9a9a", "#8c6d46")
"""Ink is for lines over a stack. The last two are the same in the light and in the dark."""
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH, PANEL_WIDTH = 4.7, 3.1
"""Inches; 4.7 are 451 pixels of a page."""
BAND_MARGIN = 0.75
"""Bands are drawn up to this multiple of the curves' own range: a wide band would flatten the curves."""
FACES = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
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
    **dict.fromkeys(FACES, "none"),
}


@dataclass(frozen=True)
class Curve:
    """One variant's mean over seeds at ``points`` (P,), with its interval; ``low`` and ``high`` may be NaN."""

    points: Floats
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Stack:
    """Quantities at ``points`` (P,) that add up, from the bottom to the top, and others drawn as lines over them."""

    points: Floats
    layers: Mapping[str, Floats]
    lines: Mapping[str, Floats]


def curves_figure(
    name: str, curves: Mapping[str, Curve], x: str, y: str, styles: Mapping[str, int], background: str = "none"
) -> str:
    """Lines with bands; a single point gets a marker. The legend is below."""
    with matplotlib.rc_context({**SETTINGS, **dict.fromkeys(FACES, background)}):
        figure = Figure(figsize=(WIDTH, 3.1 + 0.2 * -(-len(curves) // 2)), layout="constrained")
        axes = figure.subplots()
        entries = _draw_curves(axes, curves, styles)
        axes.set_ylim(*_height(list(curves.values()), axes.get_ylim()))
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if len(entries) > 1:
            figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False)
        return _svg(figure, name)


def panel_figures(
    name: str,
    panels: Mapping[str, Mapping[str, Curve]],
    x: str,
    styles: Mapping[str, int],
    *,
    same_height: bool = False,
) -> list[str]:
    """Small curves, a picture each, and their legend as the last one; ``same_height`` where all show one quantity."""
    everything = [curve for curves in panels.values() for curve in curves.values()]
    drawn: list[str] = []
    entries: dict[str, Any] = {}
    with matplotlib.rc_context({**SETTINGS, "lines.linewidth": 1.2, "lines.markersize": 2.5}):
        for number, (title, curves) in enumerate(panels.items()):
            figure = Figure(figsize=(PANEL_WIDTH, 2.25), layout="constrained")
            axes = figure.subplots()
            entries |= _draw_curves(axes, curves, styles)
            shown = everything if same_height else list(curves.values())
            axes.set_ylim(*_height(shown, None if same_height else axes.get_ylim()))
            axes.set_title(title, fontsize=9.5, loc="left")
            axes.set_xlabel(x)
            drawn.append(_svg(figure, f"{name}-{number}"))
        return drawn + ([_legend(name, entries)] if len(entries) > 1 else [])


def stack_figures(name: str, stacks: Mapping[str, Stack], x: str, y: str, order: Sequence[str]) -> list[str]:
    """A stack a picture, all of one height, and their legend as the last one.

    ``order`` holds the layers that there may be, from the bottom to the top: each has one colour on every page.
    """
    highest = max(float(np.sum([*stack.layers.values()], axis=0).max()) for stack in stacks.values())
    entries: dict[str, Any] = {}
    drawn = []
    with matplotlib.rc_context(SETTINGS):
        for number, (title, stack) in enumerate(stacks.items()):
            figure = Figure(figsize=(PANEL_WIDTH, 2.4), layout="constrained")
            axes = figure.subplots()
            entries |= _draw_stack(axes, stack, order)
            axes.set_ylim(0, 1.05 * highest)
            axes.set_title(title, fontsize=9.5, loc="left")
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            drawn.append(_svg(figure, f"{name}-{number}"))
        shown = [*(layer for layer in order if layer in entries), *(entries.keys() - set(order))]
        return [*drawn, _legend(name, {each: entries[each] for each in shown})]


def differences_figure(
    name: str,
    panels: Mapping[str, Mapping[str, Estimate]],
    styles: Mapping[str, int],
    background: str = "none",
) -> str:
    """Quantity → variant → its difference; with an interval each; the baseline is at 0."""
    labels = list(dict.fromkeys(label for panel in panels.values() for label in panel))
    with matplotlib.rc_context({**SETTINGS, **dict.fromkeys(FACES, background)}):
        width = WIDTH + PANEL_WIDTH * (len(panels) - 1)
        figure = Figure(figsize=(width, 0.85 + 0.36 * len(labels)), layout="constrained")
        for axes, (x, panel) in zip(
            figure.subplots(1, len(panels), squeeze=False, sharey=True)[0], panels.items(), strict=True
        ):
            axes.axvline(0, color=SOFT, linewidth=1)
            for label, interval in panel.items():
                _draw_interval(axes, interval, labels.index(label), styles[label], 2.0, 6.0)
            axes.set_yticks(range(len(labels)), [label.replace(",", ",\n") for label in labels])
            axes.set_ylim(len(labels) - 0.4, -0.6)
            axes.grid(axis="y", visible=False)
            axes.set_xlabel(x)
        return _svg(figure, name)


def intervals_figure(
    name: str, values: Mapping[str, Mapping[str, Estimate]], x: str, y: str, styles: Mapping[str, int]
) -> str:
    """Variant → group → value: a row a group, in it an interval a variant. The legend is below."""
    groups = list(dict.fromkeys(group for by_group in values.values() for group in by_group))
    step = 0.8 / len(values)
    with matplotlib.rc_context(SETTINGS):
        rows, keys = len(groups) * max(2, len(values)), -(-len(values) // 2)
        figure = Figure(figsize=(WIDTH, 0.9 + 0.14 * rows + 0.2 * keys), layout="constrained")
        axes = figure.subplots()
        entries: dict[str, Any] = {}
        for position, (label, by_group) in enumerate(values.items()):
            for group, interval in by_group.items():
                row = groups.index(group) + (position + 0.5) * step - 0.4
                entries[label] = _draw_interval(axes, interval, row, styles[label], 1.4, 4.0)
        axes.set_yticks(range(len(groups)), groups)
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if len(values) > 1:
            figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False)
        return _svg(figure, name)


def _legend(name: str, entries: Mapping[str, Any]) -> str:
    """A picture of its own: label → what is drawn of it."""
    figure = Figure(figsize=(WIDTH, 0.1 + 0.22 * -(-len(entries) // 2)))
    figure.legend(entries.values(), entries.keys(), loc="center", ncols=2, frameon=False)
    return _svg(figure, f"{name}-legend")


def _draw_interval(axes: Any, interval: Estimate, row: float, style: int, width: float, marker: float) -> Any:
    colour = _colour(style)
    axes.plot([interval.low, interval.high], [row, row], color=colour, linewidth=width, solid_capstyle="butt")
    (point,) = axes.plot([interval.value], [row], color=colour, linewidth=0, marker=_marker(style), markersize=marker)
    return point


def _draw_stack(axes: Any, stack: Stack, order: Sequence[str]) -> dict[str, Any]:
    """Label → what the legend shows of it. A stack at one point is drawn half a unit to both sides of it."""
    points, alone = stack.points, len(stack.points) == 1
    points = np.array([points[0] - 0.5, points[0] + 0.5]) if alone else points
    layers, lines = (
        {label: values.repeat(2) if alone else values for label, values in kind.items()}
        for kind in (stack.layers, stack.lines)
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    colours = [STACK_COLOURS[order.index(label) % len(STACK_COLOURS)] for label in layers]
    areas = axes.stackplot(points, *layers.values(), colors=colours, linewidth=0)
    drawn = {
        label: axes.plot(points, values, color=INK, linestyle="--", linewidth=1.2)[0] for label, values in lines.items()
    }
    return dict(zip(layers, areas, strict=True)) | drawn


def _draw_curves(axes: Any, curves: Mapping[str, Curve], styles: Mapping[str, int]) -> dict[str, Any]:
    """Label → line, for the legend: given to it as they are, since Matplotlib leaves out labels that begin with _."""
    lines = {}
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for label, curve in curves.items():
        number = styles[label]
        few = len(curve.points) <= 12
        (lines[label],) = axes.plot(
            curve.points,
            curve.mean,
            color=_colour(number),
            linestyle=_line(number),
            marker=_marker(number) if few else None,
            zorder=3 if number else 4,  # over all bands, and the baseline over all
        )
        if not np.isnan(curve.low).all():
            axes.fill_between(
                curve.points, curve.low, curve.high, color=_colour(number), alpha=0.12, linewidth=0, zorder=1
            )
    return lines


def _height(curves: Sequence[Curve], drawn: tuple[float, float] | None) -> tuple[float, float]:
    """The axis' ends: of what is drawn, but of bands no more than `BAND_MARGIN` of the curves' own range."""
    low, high = (float(end(np.concatenate([curve.mean for curve in curves]))) for end in (np.min, np.max))
    margin = BAND_MARGIN * (high - low) or 0.05 * abs(high) or 1.0
    if drawn is None:
        bands = np.concatenate([np.r_[curve.low, curve.high, low, high] for curve in curves])
        space = 0.05 * (np.nanmax(bands) - np.nanmin(bands))
        drawn = float(np.nanmin(bands) - space), float(np.nanmax(bands) + space)
    return max(drawn[0], low - margin), min(drawn[1], high + margin)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _line(number: int) -> Any:
    """Seven variants have one each; further ones go through the same colours again, each with another line."""
    return LINES[(number + number // len(LINES)) % len(LINES)]


def _marker(number: int) -> str:
    """See `_line`."""
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
    """Each variant's number, which gives it the same style in all pictures."""
    return {name: number for number, name in enumerate(variants)}

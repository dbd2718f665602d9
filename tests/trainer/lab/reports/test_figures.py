"""Names as their users wrote them stand in the pictures."""

import re

import numpy as np
import pytest

from evenkeel.trainer.lab.reports.curves import PHASES
from evenkeel.trainer.lab.reports.figures import (
    INK,
    LINE,
    SOFT,
    STACK_COLOURS,
    Curve,
    curves_figure,
    intervals_figure,
    panel_figures,
    styles_of,
)
from evenkeel.trainer.lab.statistics import Estimate


@pytest.mark.parametrize("name", ["_under", r"a$\frac$", "a$b$c"])
def test_any_name_stands_in_the_legend(name: str):
    line = np.array([0.0, 1.0])
    curves = {name: Curve(line, line, line, line), "other": Curve(line, line, line, line)}
    styles = styles_of(list(curves))
    values = {label: {"group": Estimate(0.5, 0.4, 0.6, 3, None, 0.0, 0.0)} for label in curves}
    for svg in (
        curves_figure("c", curves, "x", "y", styles),
        panel_figures("p", {"title": curves}, "x", styles)[-1],
        intervals_figure("b", values, "x", "y", styles),
    ):
        assert f">{name}</text>" in svg


def test_a_wide_band_does_not_flatten_the_curves():
    """Means from 0.4 to 0.6, bands from 0 to 1: the axis shows 0.75 ranges beside them, 0.25 to 0.75, at most."""
    points = np.array([0.0, 1.0])
    curve = Curve(points, np.array([0.4, 0.6]), np.array([0.0, 0.0]), np.array([1.0, 1.0]))
    svg = curves_figure("c", {"only": curve}, "x", "y", {"only": 0})
    shown = [float(found) for found in re.findall(r">(0\.\d+)</text>", svg)]
    assert 0.25 <= min(shown) <= 0.4
    assert 0.6 <= max(shown) <= 0.75


def test_no_two_variants_of_many_are_drawn_alike():
    """Fourteen: seven colours, each with two lines and two markers."""
    names = [f"v{number}" for number in range(14)]
    curve = Curve(np.arange(30.0), np.arange(30.0), *(np.full(30, np.nan),) * 2)
    svg = curves_figure("many", dict.fromkeys(names, curve), "x", "y", styles_of(names))
    lines = re.findall(r'clip-path="[^"]+" style="(fill: none; stroke[^"]+stroke-width: 1\.6[^"]*)"', svg)
    assert len(lines) == len(set(lines)) == 14


def test_two_layers_of_a_stack_have_two_colours_in_the_light_and_in_the_dark():
    """Colours that the page exchanges in the dark may fall on one that it keeps."""
    assert len(set(STACK_COLOURS)) == len(STACK_COLOURS) >= len(PHASES)
    assert not set(STACK_COLOURS) & {INK, SOFT, LINE}

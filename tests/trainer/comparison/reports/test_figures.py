"""Names as their users wrote them stand in the pictures."""

import re

import numpy as np
import pytest

from trainer.comparison.reports.figures import (
    Curve,
    PointInterval,
    curves_figure,
    intervals_figure,
    panel_figures,
    styles_of,
)


@pytest.mark.parametrize("name", ["_under", r"a$\frac$", "a$b$c"])
def test_any_name_stands_in_the_legend(name: str):
    line = np.array([0.0, 1.0])
    curves = {name: Curve(line, line, line, line), "other": Curve(line, line, line, line)}
    styles = styles_of(list(curves))
    values = {label: {"group": PointInterval(0.5, 0.4, 0.6)} for label in curves}
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

"""Names as their users wrote them stand in the pictures."""

import numpy as np
import pytest

from trainer.comparison.reports.figures import Bar, Curve, bars_figure, curves_figure, panels_figure, styles_of


@pytest.mark.parametrize("name", ["_under", r"a$\frac$", "a$b$c"])
def test_any_name_stands_in_the_legend(name: str):
    line = np.array([0.0, 1.0])
    curves = {name: Curve(line, line, line, line), "other": Curve(line, line, line, line)}
    styles = styles_of(list(curves))
    bars = {label: {"group": Bar(0.5, 0.4, 0.6)} for label in curves}
    for svg in (
        curves_figure("c", curves, "x", "y", styles),
        panels_figure("p", {"title": curves}, "x", styles),
        bars_figure("b", bars, "x", "y", styles),
    ):
        assert f">{name}</text>" in svg

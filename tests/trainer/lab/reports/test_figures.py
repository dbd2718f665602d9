"""Names as their users wrote them stand in the pictures."""

import numpy as np
import pytest

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.reports.figures import Curve, curves_figure, differences_figure, panel_figures


@pytest.mark.parametrize("name", ["_under", r"a$\frac$", "a$b$c"])
def test_any_name_stands_in_the_legend(name: str):
    line = np.array([0.0, 1.0])
    curves = {name: Curve(line, line, line, line), "other": Curve(line, line, line, line)}
    styles = {name: number for number, name in enumerate(curves)}
    values = {label: Estimate(0.5, 0.4, 0.6, 3, None, 0.0, 0.0) for label in curves}
    for svg in (
        curves_figure("c", curves, "x", "y", styles),
        panel_figures("p", {"title": curves}, "x", styles)[-1],
        differences_figure("b", values, "x", styles),
    ):
        assert f">{name}</text>" in svg

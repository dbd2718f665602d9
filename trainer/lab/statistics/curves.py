"""The height of a learning curve in one number. Values (…, P) at increasing points (P,): steps or tokens."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def area_under_curve(values: ArrayLike, points: ArrayLike) -> NDArray[np.float64]:
    """Mean height of each curve, (…,): the trapezoidal area divided by ``points[-1] − points[0]``.

    In the unit of the values, so that a constant curve has its own height.
    """
    heights, where = np.asarray(values, float), np.asarray(points, float)
    if len(where) < 2:
        return np.full(heights.shape[:-1], np.nan)
    return np.trapezoid(heights, where, axis=-1) / (where[-1] - where[0])

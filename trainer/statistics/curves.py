"""What one number says about a learning curve. Values (…, P) at increasing points (P,): steps or tokens."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def best(values: ArrayLike) -> Floats:
    """The largest value of each curve, (…,); NaN points are skipped.

    A maximum over noisy evaluations is too high by construction, the more so the more often a run was evaluated:
    compare only runs that were evaluated equally often.
    """
    return np.nanmax(np.asarray(values, float), axis=-1)


def area_under_curve(values: ArrayLike, points: ArrayLike) -> Floats:
    """Mean height of each curve, (…,): the trapezoidal area divided by ``points[-1] − points[0]``.

    In the unit of the values, so that a constant curve has its own height.
    """
    heights, where = np.asarray(values, float), np.asarray(points, float)
    if len(where) < 2:
        return np.full(heights.shape[:-1], np.nan)
    return np.trapezoid(heights, where, axis=-1) / (where[-1] - where[0])


def first_reaching(values: ArrayLike, points: ArrayLike, threshold: float) -> Floats:
    """The first point at which a curve is ≥ ``threshold``, (…,); NaN where it never is (censored at the last point).

    Points between two evaluations are not guessed: the result is one of ``points``.
    """
    reached = np.asarray(values, float) >= threshold
    where = np.broadcast_to(np.asarray(points, float), reached.shape)
    first = np.take_along_axis(where, reached.argmax(-1)[..., None], -1)[..., 0]
    return np.where(reached.any(-1), first, np.nan)

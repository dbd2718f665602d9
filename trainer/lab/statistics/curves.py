"""What one number says about a learning curve. Values (…, P) at increasing points (P,): steps or tokens."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.statistics.intervals import mean_estimate

Floats = NDArray[np.float64]
FEWEST_POINTS = 6
"""Evaluations behind the start that a sigmoid of three parameters is drawn through."""
MADE = 0.8
"""The share of a fitted curve's way that must have been made by its last point; more would be extrapolated."""


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


@dataclass(frozen=True)
class Saturation:
    """Where learning curves end, and how soon, apart from each other.

    Attributes:
        asymptote: the height that the curve approaches.
        half: the point at which half of the way from the start to the asymptote is made.
    """

    asymptote: Estimate
    half: Estimate


def saturation(points: ArrayLike, values: ArrayLike) -> Saturation | None:
    """A sigmoid through the mean of curves (S, P) of S seeds: ``R(C) = R_0 + (A − R_0) / (1 + (C_half / C)^B)``.

    Khatri et al., "The Art of Scaling Reinforcement Learning Compute for LLMs" (arXiv 2510.13786), equation 1, with the
    measured start as R_0. Least squares with A in [0, 1] and B in [0.3, 5]. The intervals are of the jackknife over
    seeds: pseudo-values ``S·θ − (S − 1)·θ_without_s``, those of C_half of its logarithm.

    Args:
        points: rollout batches (P,), the first 0.

    Returns:
        ``None`` where a curve does not begin at 0, has fewer than 6 points behind it, is of fewer than three seeds, or
        has made less than 80 % of its way by its last point, also with any one seed left out: then where it ends is a
        guess.
    """
    where, heights = np.asarray(points, float), np.asarray(values, float)
    if len(where) < FEWEST_POINTS + 1 or where[0] != 0 or len(heights) < 3 or not np.isfinite(heights).all():
        return None
    every = [_sigmoid(where, heights.mean(0))]
    every += [_sigmoid(where, np.delete(heights, seed, axis=0).mean(0)) for seed in range(len(heights))]
    if any(fit is None for fit in every):
        return None
    whole, *without = np.array(every)
    pseudo = len(heights) * whole - (len(heights) - 1) * np.array(without)
    asymptote, half = (mean_estimate(column) for column in pseudo.T)
    value, low, high = (float(np.exp(each)) for each in (whole[1], half.low, half.high))
    return Saturation(replace(asymptote, value=float(whole[0])), replace(half, value=value, low=low, high=high))


def _sigmoid(points: Floats, heights: Floats) -> tuple[float, float] | None:
    """Asymptote and logarithm of the halfway point; ``None`` where the last point is not far enough."""
    start, behind, rest = heights[0], points[1:], heights[1:]

    def share(log_half: float, exponent: float) -> Floats:
        return np.asarray(1 / (1 + np.exp(exponent * (log_half - np.log(behind)))))

    def errors(parameters: Floats) -> Floats:
        asymptote, log_half, exponent = parameters
        return np.asarray(start + (asymptote - start) * share(log_half, exponent) - rest)

    bounds = ([0.0, np.log(behind[0]) - 2, 0.3], [1.0, np.log(behind[-1]) + 2, 5.0])
    guess = [np.clip(rest[-1], 0.01, 0.99), np.log(behind[-1]) - 1, 1.0]
    fit = optimize.least_squares(errors, guess, bounds=bounds)
    asymptote, log_half, exponent = fit.x
    return (float(asymptote), float(log_half)) if share(log_half, exponent)[-1] >= MADE else None

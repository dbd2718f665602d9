"""Where a learning curve ends, and how soon: of exact curves exactly, of noisy ones within the interval."""

import numpy as np
import pytest

from evenkeel.trainer.lab.statistics import saturation

POINTS = np.arange(0.0, 41.0, 4.0)


def sigmoid(asymptote: float, half: float, exponent: float, start: float = 0.3) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return start + (asymptote - start) / (1 + (half / POINTS) ** exponent)


def noisy(rng: np.random.Generator, seeds: int) -> np.ndarray:
    """Seeds end at .6 ± .02; an evaluation is off by .01."""
    curves = [sigmoid(rng.normal(0.6, 0.02), 8.0, 1.5) for _ in range(seeds)]
    return np.array(curves) + rng.normal(0, 0.01, (seeds, len(POINTS)))


@pytest.mark.parametrize(("asymptote", "half"), [(0.6, 8.0), (0.9, 4.0), (0.1, 8.0)])
def test_an_exact_curve_is_read_exactly(asymptote: float, half: float) -> None:
    """Also one that falls."""
    found = saturation(POINTS, [sigmoid(asymptote, half, 1.5)] * 3)
    assert found is not None
    assert found.asymptote.value == pytest.approx(asymptote, abs=1e-4)
    assert found.half.value == pytest.approx(half, rel=1e-3)


def test_a_curve_that_still_climbs_has_no_end_to_report() -> None:
    """At the last point 1 / (1 + (40 / 40)^1.5) = half of the way is made."""
    assert saturation(POINTS, [sigmoid(0.6, 40.0, 1.5)] * 3) is None
    assert saturation(POINTS, [sigmoid(0.6, 8.0, 1.5)] * 2) is None
    assert saturation(POINTS[:6], [sigmoid(0.6, 2.0, 1.5)[:6]] * 3) is None
    assert saturation(POINTS[1:], [sigmoid(0.6, 8.0, 1.5)[1:]] * 3) is None


@pytest.mark.slow
def test_the_intervals_hold_the_truth() -> None:
    """Of 95 % intervals from 5 seeds; 100 sweeps have a standard error of 2 %."""
    rng = np.random.default_rng(0)
    found = [each for _ in range(100) if (each := saturation(POINTS, noisy(rng, 5))) is not None]
    assert len(found) > 75
    for name, truth in (("asymptote", 0.6), ("half", 8.0)):
        inside = np.mean([getattr(each, name).low <= truth <= getattr(each, name).high for each in found])
        assert inside > 0.89, (name, inside)

r"""Constants are equal when they are equal: no rounding decides, however small or large they are."""

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Integer, Rational, pi, sqrt

from evenkeel.rewards.verifiers.math_answer.algebra import equal, rounds_to

HALF = Rational(1, 2)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Integer(2), Integer(2), True),
        (HALF**2017, HALF**2018, False),  # both below the least double, 10^-308
        (1 - Rational(5, 6) ** 200, 1 - Rational(5, 6) ** 199, False),  # they differ by 2.9e-17
        (sqrt(2) + sqrt(3), sqrt(5 + 2 * sqrt(6)), True),  # squared: 5 + 2 sqrt 6 both
        (sqrt(2) + sqrt(3), sqrt(5 + 2 * sqrt(6)) + Rational(1, 10**200), False),
        (sympy.exp(pi * sqrt(163)), Integer(640320**3 + 744), False),  # they differ by 7.5e-13 at 2.6e17
        (sqrt(10**24 + 3), Integer(10**12), False),  # by 1.5e-12
        (1 + sympy.exp(-2000), Integer(1), False),  # by 10^-868, more digits than MOST_DIGITS
        (sympy.exp(sympy.I * pi / 4), sqrt(2) / 2 + sympy.I * sqrt(2) / 2, True),
        (sympy.exp(sympy.I * pi / 4), sqrt(2) / 2 - sympy.I * sqrt(2) / 2, False),
        (sympy.sin(pi / 900), pi / 900, False),  # sin x < x; by 7.1e-9
        (3 * sqrt(13), sympy.oo / 2, False),
        (sympy.oo, sympy.oo, True),
        (sympy.oo, -sympy.oo, False),
        (sympy.nan, sympy.nan, False),
        (sympy.zoo, Integer(1), False),
        (sympy.tanh(1000), Integer(1), False),  # by 2 e^-2000 = 10^-868
        (sympy.erf(40), Integer(1), False),  # by e^-1600 / (40 sqrt pi) = 10^-697
        (sympy.sin(Integer(10) ** 30), sympy.sin(Integer(10) ** 30 + 1), False),
        (sympy.floor(sympy.tanh(1000), evaluate=False), Integer(1), False),
        (sympy.floor(sympy.sqrt(2) * sympy.sqrt(8), evaluate=False), Integer(4), True),
        (sympy.cbrt(2 + sqrt(5)) + sympy.cbrt(2 - sqrt(5)), Integer(1), True),  # t^3 = 4 - 3t has the root 1
    ],
)
def test_constants_are_compared_without_rounding(one: sympy.Expr, other: sympy.Expr, expected: bool):
    assert equal(one, other) is expected
    assert equal(other, one) is expected


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(1, 900), st.sampled_from([-2, -1, 1, 2]), st.integers(2, 30))
def test_a_neighbouring_exponent_is_another_number(base: int, exponent: int, step: int, radicand: int):
    root = sqrt(radicand)
    powers = [root + Rational(1, base) ** number for number in (exponent + 2, exponent + 2 + step)]
    assert not equal(*powers)
    assert equal(powers[0], root + 1 / Integer(base) ** (exponent + 2))


@pytest.mark.parametrize(
    ("value", "about", "expected"),
    [
        (sqrt(2), "1.41", True),  # 1.41421…
        (sqrt(2), "1.42", False),
        (pi, "3.1416", True),  # 3.14159 rounded
        (pi, "3.141", True),  # … and cut off
        (pi, "3.143", False),
        (sqrt(2), "1.5", False),
        (sqrt(2), "-1.414", False),
        (-sqrt(2), "-1.414", True),
        (Rational(40, 3), "13.33", True),
        (Rational(1, 3), "3", False),
        (sympy.I, "1", False),
        (sympy.oo, "1", False),
    ],
)
def test_a_value_is_about_what_it_rounds_to(value: sympy.Expr, about: str, expected: bool):
    assert rounds_to(value, Rational(about)) is expected

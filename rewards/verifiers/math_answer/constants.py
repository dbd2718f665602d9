r"""Constants compared without rounding.

``2^{-2017}`` is not ``2^{-2018}``, and ``\sqrt2+\sqrt3`` is ``\sqrt{5+2\sqrt6}``. Rationals are compared exactly.
The difference of two others is evaluated with rising precision until its first digits are certain, which proves that
they differ. Two count as equal that agree to `MOST_DIGITS` and twice the digits of all numbers and values in them,
unless that takes more than `LONGEST_PROOF`. What is under a floor or ceiling is compared likewise before it is rounded.
"""

from typing import Any

import mpmath
import sympy
from sympy.core.evalf import PrecisionExhausted
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

MOST_DIGITS = 300
LONGEST_PROOF = 20_000


def equal(one: sympy.Expr, other: sympy.Expr) -> bool:
    """Whether two constants are the same number, real or complex; infinite ones by their sign."""
    one, other = (_rounded(side).doit() for side in (one, other))
    if not (one.has(sympy.I) or other.has(sympy.I)):
        one, other = _with_real_roots(one), _with_real_roots(other)
    if not (one.is_finite and other.is_finite):
        return bool(one == other) and one.is_infinite is True
    difference = one - other
    if difference.is_Rational:
        return bool(difference == 0)
    return _is_zero(difference)


def _rounded(expression: sympy.Expr) -> sympy.Expr:
    """``expression`` with each floor and ceiling worked out without rounding before: ⌊tanh 1000⌋ is 0."""
    return expression.replace(sympy.floor, _floor).replace(sympy.ceiling, lambda inner: -_floor(-inner))


def _floor(inner: sympy.Expr) -> sympy.Expr:
    if inner.free_symbols or not (value := inner.evalf(30)).is_Float:
        return sympy.floor(inner)
    nearest = sympy.Integer(round(value))
    if equal(inner, nearest):
        return nearest
    return nearest if _value(inner - nearest, min(_digits_to_compare(inner), LONGEST_PROOF)) > 0 else nearest - 1


def _with_real_roots(expression: sympy.Expr) -> sympy.Expr:
    """``expression`` with the real root where an odd one is drawn of a number below zero."""
    return expression.replace(
        lambda part: part.is_Pow and part.exp.is_Rational and part.exp.q % 2 == 1 and part.base.is_negative is True,
        lambda part: (-1) ** part.exp.p * (-part.base) ** part.exp,
    )


def rounds_to(value: sympy.Expr, about: sympy.Rational) -> bool:
    """Whether ``value``, rounded or cut off to the decimal places of ``about``, is that."""
    unit = sympy.Integer(1)
    while (about / unit).q != 1:
        unit /= 10
        if unit < sympy.Rational(1, 10**30):
            return False
    exact = value.evalf(40 + len(str(about)))
    if not exact.is_Float:
        return False
    return bool(abs(exact - about) <= unit / 2 or (exact * about >= 0 and 0 <= abs(exact) - abs(about) < unit))


def _is_zero(difference: sympy.Expr) -> bool:
    digits = _digits_to_compare(difference)
    try:
        value: Any = difference.evalf(2, maxn=digits, strict=True)
    except PrecisionExhausted:  # also raised of a part of it
        value = 0
    if value != 0:
        return False
    return digits <= LONGEST_PROOF and bool(abs(_value(difference, digits)) < mpmath.mpf(10) ** -digits)


def _digits_to_compare(difference: sympy.Expr) -> int:
    return MOST_DIGITS + 2 * sum(_digits(part) for part in sympy.preorder_traversal(difference))


def _value(expression: sympy.Expr, digits: int) -> Any:
    """The value, computed with twice as many digits as are to be certain; ``evalf`` takes ln(1 + e^-700) for zero."""
    with mpmath.workdps(2 * digits):
        return sympy.lambdify([], expression, "mpmath")()


def _digits(part: sympy.Basic) -> int:
    """How many digits a part of an expression takes: those of its integers, or those by which it is large or small.

    An exponential function comes as near to its limit as its argument is large: 1 − tanh 1000 is 10^-868.
    """
    if isinstance(part, sympy.Rational):
        return max(int(part.p).bit_length(), int(part.q).bit_length()) // 3
    if not isinstance(part, sympy.Expr):
        return 0
    size = abs(part.evalf(5))
    digits = int(abs(sympy.log(size, 10))) if size.is_Float and size > 0 else 0
    if isinstance(part, sympy.exp | HyperbolicFunction | sympy.erf | sympy.erfc):
        argument = abs(part.args[0].evalf(5))
        growth = argument**2 if isinstance(part, sympy.erf | sympy.erfc) else argument
        digits += int(min(growth, 10**6)) if argument.is_Float else 0
    return digits

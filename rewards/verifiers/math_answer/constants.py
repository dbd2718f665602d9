r"""Constants compared without rounding.

``2^{-2017}`` is not ``2^{-2018}``, and ``\sqrt2+\sqrt3`` is ``\sqrt{5+2\sqrt6}``. Rationals are compared exactly.
The difference of two others is evaluated with rising precision until its first digits are certain, which proves that
they differ. Two that agree to `MOST_DIGITS`, and twice the digits of the longest number in them, count as equal.
"""

from typing import Any

import sympy
from sympy.core.evalf import PrecisionExhausted

MOST_DIGITS = 300


def equal(one: sympy.Expr, other: sympy.Expr) -> bool:
    """Whether two constants are the same number, real or complex; infinite ones by their sign."""
    one, other = one.doit(), other.doit()
    if not (one.is_finite and other.is_finite):
        return bool(one == other) and one.is_infinite is True
    difference = one - other
    if difference.is_Rational:
        return bool(difference == 0)
    return _is_zero(difference)


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
    digits = MOST_DIGITS + 2 * max(_digits(part) for part in sympy.preorder_traversal(difference))
    try:
        value: Any = difference.evalf(2, maxn=digits, strict=True)
    except PrecisionExhausted:
        return True
    return bool(value == 0)


def _digits(part: sympy.Basic) -> int:
    """How many digits a part of an expression takes: those of its integers, or those by which it is large or small."""
    if isinstance(part, sympy.Rational):
        return max(int(part.p).bit_length(), int(part.q).bit_length()) // 3
    size = abs(part.evalf(5)) if isinstance(part, sympy.Expr) else sympy.Integer(1)
    return int(abs(sympy.log(size, 10))) if size.is_Float and size > 0 else 0

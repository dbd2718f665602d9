"""Algebra: whether two expressions are equal, by math-verify and sympy. Runs in worker processes only.

Nothing here is bounded in time: the worker's limits are. math-verify's own timeouts are off, since its signal cannot
interrupt C code. It is given single expressions, both boxed; structure, units, bases, names and words have been
compared before it is asked, so that its leniency about them does not matter.
"""

import cmath
import re
from functools import lru_cache
from typing import Any

import sympy
from latex2sympy2_extended import NormalizationConfig, latex2sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig
from math_verify import verify

from rewards.verifiers.math_answer.comparison import same
from rewards.verifiers.math_answer.forms import Expression, Number, Relation
from rewards.verifiers.math_answer.reading import read

# Its unit stripping would take the t of 3t for tonnes, and it would take R for r.
_SPELLING = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none")
_MEANING = ConversionConfig(lowercase_symbols=False)
_IMAGINARY_UNIT = sympy.Symbol("i", real=True)
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)")
_SLASHED_FACTOR = re.compile(r"(?<![\w.^{)}])(\d+)/(\d+)(?: (?=[a-zA-Z(])| ?(?=\\(?:pi|sqrt)))")
_NATURAL = re.compile(r"\\log ?_ ?(?:e|\{ ?e ?\})")
_ANGLE = re.compile(r"(\d+(?:\.\d+)?) ?\^\\circ")


def judge(item: list[str]) -> bool:
    """Whether two texts, the gold and the answer, say the same."""
    gold, answer = item
    return same(read(gold), read(answer), _algebra) is True


def _algebra(gold: Expression | Relation | Number, answer: Expression | Relation | Number) -> bool:
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return _same_relation(gold, answer)
    one, other = _parsed(_latex(gold)), _parsed(_latex(answer))
    if one is None or other is None:
        return False
    return (
        bool(verify(one, other, allow_set_relation_comp=True, timeout_seconds=None)) and _close(one, other)
    ) or _same_logarithms(one, other)


def _same_relation(gold: Relation, answer: Relation) -> bool:
    r"""Whether one difference of the sides is a constant multiple of the other, above zero for inequalities."""
    if gold.sign != answer.sign:
        return False
    sides: list[Any] = [_parsed(_exact(side)) for side in (gold.left, gold.right, answer.left, answer.right)]
    if not all(isinstance(side, sympy.Expr) for side in sides):
        return False
    first, second = sides[0] - sides[1], sides[2] - sides[3]
    if gold.sign == "=":  # y = 1/x is xy = 1
        first, second = (sympy.fraction(sympy.together(difference))[0] for difference in (first, second))
    ratio = sympy.simplify(first / second)
    if not ratio.is_number or not ratio.is_finite or ratio.is_zero:
        return False
    return gold.sign in ("=", "\\ne") or bool(ratio.is_positive)


def _same_logarithms(one: Any, other: Any) -> bool:
    r"""Whether ``\ln a + \ln b`` is ``\ln ab`` where both have a value: what stands under a logarithm is above zero."""
    if not all(isinstance(side, sympy.Expr) and side.has(sympy.log) and side.free_symbols for side in (one, other)):
        return False
    return bool(sympy.simplify(sympy.expand_log(one - other, force=True)) == 0)


def _close(one: Any, other: Any) -> bool:
    """Whether two constants agree in relative terms: math-verify rounds absolutely, so that 10⁻²⁰ would equal 0."""
    if not (isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr) and one.is_number and other.is_number):
        return True
    try:
        first, second = (complex(sympy.N(value, 30)) for value in (one, other))
    except TypeError:  # a function that sympy gives no value
        return False
    if not (cmath.isfinite(first) and cmath.isfinite(second)):
        return first == second  # inf ≤ inf would hold for any other value
    return abs(first - second) <= 1e-12 * max(abs(first), abs(second))


def _latex(form: Expression | Relation | Number) -> str:
    assert not isinstance(form, Relation)
    return _exact(form.latex)


def _exact(latex: str) -> str:
    r"""Decimals as fractions, so that nothing is rounded; degrees as radians; ``4/3 \pi`` from left to right."""
    latex = _NATURAL.sub(r"\\ln", latex)
    latex = _SLASHED_FACTOR.sub(r"\\frac{\1}{\2}", latex)
    latex = _ANGLE.sub(r"(\\frac{\1\\pi}{180})", latex)
    return _DECIMAL.sub(lambda match: f"\\frac{{{match[1]}{match[2]}}}{{1{'0' * len(match[2])}}}", latex)


@lru_cache(maxsize=256)
def _parsed(latex: str) -> Any | None:
    """``latex`` as sympy has it, variables real, i the imaginary unit; ``None`` where it is not understood."""
    try:
        parsed = latex2sympy(latex, is_real=True, normalization_config=_SPELLING, conversion_config=_MEANING)
        return parsed.subs(_IMAGINARY_UNIT, sympy.I)
    except Exception:  # noqa: BLE001 — the parser raises plain Exception, and sympy anything, of what a policy invents
        return None

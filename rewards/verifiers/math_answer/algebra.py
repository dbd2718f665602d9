r"""Algebra by sympy, in worker processes only: are two expressions equal?

Nothing here is bounded in time: the worker's limits are. It is given single expressions; structure, units, bases, names
and words have been compared before. Two expressions with letters are equal where sympy proves it, and are not even
asked about where they differ at a point.
"""

import re
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

import mpmath
import sympy
from latex2sympy2_extended import NormalizationConfig, normalize_latex
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, _Latex2Sympy
from sympy.core.evalf import PrecisionExhausted
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from evenkeel.rewards.verifiers.math_answer.comparison import adds_a_root, same
from evenkeel.rewards.verifiers.math_answer.forms import About, Expression, Number, Relation
from evenkeel.rewards.verifiers.math_answer.letters import may_not_commute, parsed_with_marks, renamed_constants
from evenkeel.rewards.verifiers.math_answer.notation import matching_end
from evenkeel.rewards.verifiers.math_answer.quantities import PERCENT
from evenkeel.rewards.verifiers.math_answer.reading import read_beside

# Its unit stripping would take the t of 3t for tonnes, and it would take R for r.
_SPELLING = NormalizationConfig(basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none")
_MEANING = ConversionConfig(lowercase_symbols=False)
_IMAGINARY_UNIT = sympy.Symbol("i", real=True)
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)")
_SLASHED_FACTOR = re.compile(r"(?<![\w.^{)}])(\d+)/(\d+)(?: (?=[a-zA-Z(])| ?(?=\\(?:pi|sqrt)))")
_MIXED = re.compile(r"(?<![\w.^}])(\d+) ?(\\frac ?\{ ?(\d+) ?\} ?\{ ?(\d+) ?\})")
_NATURAL = re.compile(r"\\log ?_ ?(?:e|\{ ?e ?\})")
_TRACE = re.compile(r"\\(?:begin|end) ?\{\w+\}|\\[a-zA-Z]+|tr")  # its parser would take 6trs for a trace
# no transpose, which `letters` keeps for capitals
_POWER_T = re.compile(r"\^ ?(?:T(?![a-z])|\{ ?T ?\})")
_BEFORE_A_FUNCTION = re.compile(r"\\(?:cdot|times) ?(?=\\(?:sin|cos|tan|cot|sec|csc|ln|log|exp)(?![a-z]))")
_FACTOR_BEHIND = re.compile(r"\\cdot|\\times|\*|[a-zA-Z})] ?\(")
_ANGLE = re.compile(r"(\d+(?:\.\d+)?) ?\^\\circ")

MOST_DIGITS = 300
LONGEST_PROOF = 20_000


class _Reader(_Latex2Sympy):  # type: ignore[misc]  # it has no types
    r"""Its parser, without the sums that it reads into ``2(3)``; `_exact` has spelled out mixed numbers before.

    Where a factor stands behind a function without brackets, ``\sin x \cdot y``, its argument is not known.
    """

    def convert_postfix_list(self, arr: list[Any], i: int = 0) -> Any:
        factors = [self.convert_postfix(each) for each in arr[i:]]
        if not all(isinstance(factor, sympy.Expr) for factor in factors):
            return super().convert_postfix_list(arr, i)
        return reduce(lambda product, factor: self.mul_flat(factor, product), reversed(factors))

    def convert_func_arg(self, arg: Any) -> Any:
        if not hasattr(arg, "expr") and _FACTOR_BEHIND.search(arg.getText()):
            raise ValueError(arg.getText())
        return super().convert_func_arg(arg)


def judge(item: list[str]) -> bool:
    """Whether two texts, the gold and the answer, say the same."""
    gold, answer = read_beside(*item)
    return same(gold.form, answer.form, _algebra) is True


def _algebra(gold: Expression | Relation | Number | About, answer: Expression | Relation | Number) -> bool:
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return isinstance(gold, Relation) and isinstance(answer, Relation) and _same_relation(gold, answer)
    if isinstance(gold, About):
        other = _parsed(_exact(answer.latex))
        about = sympy.Rational(gold.value.value) / (100 if gold.value.unit == PERCENT else 1)
        return isinstance(other, sympy.Expr) and not other.free_symbols and rounds_to(other, about)
    apart = may_not_commute(gold.latex, answer.latex)
    one, other = (_parsed(_exact(side.latex), apart) for side in (gold, answer))
    if not (isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr)):
        return one is not None and one == other
    if _is_reducible(answer.latex) and not _is_reducible(gold.latex):
        return False
    if one.free_symbols or other.free_symbols:
        return _same_function(one, other) or any(
            _same_function(one, renamed) for renamed in _renamed(gold.latex, one, other)
        )
    return equal(one, other)


def _is_reducible(latex: str) -> bool:
    """Whether a fraction holds a factor above and below, so that it has no value where that is zero."""
    latex = re.sub(r"\\frac ?", r"\\frac", latex.replace("} {", "}{"))
    for start in re.finditer(r"\\frac\{", latex):
        middle = matching_end(latex, start.end() - 1)
        sides = latex[start.end() : middle - 1], latex[middle + 1 : matching_end(latex, middle) - 1]
        above, below = (_parsed(_exact(side)) for side in sides)
        if isinstance(above, sympy.Expr) and isinstance(below, sympy.Expr) and above.is_commutative:
            common = sympy.gcd(above, below)
            if common.free_symbols and all(power.exp.is_Integer for power in common.atoms(sympy.Pow)):
                return True
    return False


def _renamed(gold: str, one: Any, other: Any) -> list[Any]:
    """The answer under each other naming of its arbitrary constants that the gold allows."""
    letters = {str(letter): letter for side in (other, one) for letter in side.free_symbols}
    wanted, written = ({str(letter) for letter in side.free_symbols} for side in (one, other))
    return [
        other.xreplace({letters[theirs]: letters[ours] for theirs, ours in names.items()})
        for names in renamed_constants(gold, wanted, written)
    ]


def _same_function(one: sympy.Expr, other: sympy.Expr) -> bool:
    """Whether two expressions with letters are equal wherever both have a value, by a proof."""
    if one == other or one.as_dummy() == other.as_dummy():  # a sum over n is one over k
        return True
    if not (one.is_commutative and other.is_commutative):
        return bool(sympy.expand(one - other) == 0)
    if _are_apart(*_values((one, other), 1)):  # far cheaper than a proof
        return False
    return bool(sympy.simplify(one - other) == 0) or _same_logarithms(one, other)


def _values(expressions: Sequence[sympy.Expr], place: int) -> list[sympy.Expr]:
    """Each expression's value where its letters are certain fractions above zero, others at each ``place``."""
    letters = sorted(set[sympy.Basic]().union(*(each.free_symbols for each in expressions)), key=str)
    point = {letter: sympy.Rational(7 + 2 * index, 4 + place + 3 * index) for index, letter in enumerate(letters)}
    return [each.subs(point).evalf(30) for each in expressions]


def _are_apart(first: sympy.Expr, second: sympy.Expr) -> bool:
    if not (first.is_number and second.is_number and first.is_finite and second.is_finite):
        return False
    return bool(abs(first - second) > sympy.Rational(1, 10**15) * (abs(first) + abs(second)))


def _same_relation(gold: Relation, answer: Relation) -> bool:
    r"""Whether one difference of the sides is a constant multiple of the other, above zero for inequalities."""
    texts = [f"{side.left}={side.right}" for side in (gold, answer)]
    if gold.sign != answer.sign or adds_a_root(*texts) or (_is_reducible(texts[1]) and not _is_reducible(texts[0])):
        return False
    apart = may_not_commute(*texts)
    sides: list[Any] = [_parsed(_exact(side), apart) for side in (gold.left, gold.right, answer.left, answer.right)]
    if not all(isinstance(side, sympy.Expr) for side in sides):
        return False
    first, second = sides[0] - sides[1], sides[2] - sides[3]
    return any(_same_difference(gold.sign, first, other) for other in (second, *_renamed(texts[0], first, second)))


def _same_difference(sign: str, first: Any, second: Any) -> bool:
    if not (first.is_commutative and second.is_commutative):
        return 0 in (sympy.expand(first - second), sympy.expand(first + second)) and sign in ("=", "\\ne")
    if sign == "=":  # y = 1/x is xy = 1, where no solution has the denominator 0
        (first, ours), (second, theirs) = (sympy.fraction(sympy.together(each)) for each in (first, second))
        if any(_meet(second, below) for below in {ours, theirs} if {ours, theirs} - {below} and below.free_symbols):
            return False
    if not (first.free_symbols and second.free_symbols):  # any false equation would be any other
        return False
    (here, there), (here_too, there_too) = (_values((first, second), place) for place in (1, 2))
    if _are_apart(here * there_too, here_too * there):  # no constant multiple
        return False
    ratio = sympy.simplify(first / second)
    if not ratio.is_number or not ratio.is_finite or ratio.is_zero:
        return False
    return sign in ("=", "\\ne") or bool(ratio.is_positive)


def _meet(curve: Any, below: Any) -> bool:
    """Whether a curve may hold a point where a denominator is zero."""
    letters = sorted(curve.free_symbols | below.free_symbols, key=str)
    if not (curve.is_polynomial(*letters) and below.is_polynomial(*letters)):
        return True
    return bool(sympy.groebner([curve, below], *letters).exprs != [1])


def _same_logarithms(one: Any, other: Any) -> bool:
    r"""Whether ``\ln a + \ln b`` is ``\ln ab`` where both have a value: what stands under a logarithm is above zero."""
    if not all(isinstance(side, sympy.Expr) and side.has(sympy.log) and side.free_symbols for side in (one, other)):
        return False
    if any(_is_real(one, letter) and not _is_real(other, letter) for letter in one.free_symbols | other.free_symbols):
        return False
    return bool(sympy.simplify(sympy.expand_log(one - other, force=True)) == 0)


def _is_real(expression: Any, below: Any) -> bool:
    """Whether an expression has a real value where one letter is below zero, and the others above."""
    point = {letter: sympy.Rational(-7 if letter == below else 9, 4) for letter in expression.free_symbols}
    return bool(expression.subs(point).evalf(15).is_extended_real)


def _exact(latex: str) -> str:
    r"""Decimals as fractions, so that nothing is rounded; degrees as radians; ``4/3 \pi`` from left to right."""
    latex = _TRACE.sub(lambda match: "t r" if match[0] == "tr" else match[0], _NATURAL.sub(r"\\ln", latex))
    latex = _SLASHED_FACTOR.sub(r"\\frac{\1}{\2}", latex)
    latex = _MIXED.sub(lambda m: f"({m[1]}+{m[2]})" if int(m[3]) < int(m[4]) else m[0], latex)
    latex = _BEFORE_A_FUNCTION.sub("", _ANGLE.sub(r"(\\frac{\1\\pi}{180})", latex))
    return _DECIMAL.sub(lambda match: f"\\frac{{{match[1]}{match[2]}}}{{1{'0' * len(match[2])}}}", latex)


@lru_cache(maxsize=256)
def _parsed(latex: str, noncommuting: tuple[str, ...] = ()) -> Any | None:
    """``latex`` as sympy has it, variables real, i the imaginary unit; ``None`` where it is not understood."""
    return parsed_with_marks(latex, _parsed_plainly, noncommuting)


def _parsed_plainly(latex: str) -> Any | None:
    try:
        latex = _POWER_T.sub("^{(T)}", latex)
        parsed = _Reader(is_real=True, config=_MEANING).parse(normalize_latex(latex, _SPELLING))
        return parsed.subs(_IMAGINARY_UNIT, sympy.I)
    except Exception:  # noqa: BLE001 — the parser raises plain Exception, and sympy anything, of what a policy invents
        return None


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
    return nearest if _digits_of(inner - nearest, min(_digits_to_compare(inner), LONGEST_PROOF)) > 0 else nearest - 1


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
    is_cut_off = unit < 1 and exact * about >= 0 and 0 <= abs(exact) - abs(about) < unit
    return bool(is_cut_off or abs(exact - about) <= unit / 2)


def _is_zero(difference: sympy.Expr) -> bool:
    digits = _digits_to_compare(difference)
    try:
        value: Any = difference.evalf(2, maxn=digits, strict=True)
    except PrecisionExhausted:  # also raised of a part of it
        value = 0
    if value != 0:
        return False
    return digits <= LONGEST_PROOF and bool(abs(_digits_of(difference, digits)) < mpmath.mpf(10) ** -digits)


def _digits_to_compare(difference: sympy.Expr) -> int:
    return MOST_DIGITS + 2 * sum(_digits(part) for part in sympy.preorder_traversal(difference))


def _digits_of(expression: sympy.Expr, digits: int) -> Any:
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

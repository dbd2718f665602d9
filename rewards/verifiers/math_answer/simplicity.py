r"""Is an expression as simple as the gold's? Else boxing the question's own expression would answer "simplify this".

Equal forms are right: another order, a bracket multiplied out, a denominator made rational or not. Three things are
not, each measured on the text and none a matter of taste: an expression much longer than the gold (a product of
brackets may be longer than a sum: it is the gold factored); a function that the gold has no kin of
(``\arcsin(-\frac12)`` for ``-\frac{\pi}{6}``); a root that is not drawn where the gold's are (``\sqrt{242}`` for
``11\sqrt2``). An expression of the question that passes all three still pays.
"""

import re
from math import isqrt

_TOKEN = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[a-zA-Z]|[+\-*/^!|]")
_NO_WEIGHT = {"\\cdot", "\\times", "\\text", "\\circ", "*"}
_NUMERIC_FRACTION = re.compile(r"\\frac\{ ?\d+ ?\}\{ ?\d+ ?\}")  # as simple as a decimal
_ROOT_OF_INTEGER = re.compile(r"\\sqrt\{ ?(\d{1,9}) ?\}")
_ROOT_OF_ROOT = re.compile(r"\\sqrt(?:\[\d+\])?\{ ?\\sqrt")
_POLYNOMIAL = re.compile(r"(?:[a-zA-Z\d ()+-]|\^ ?\{?\d\}?)+")
_BRACKET = re.compile(r"\([^()]*\)")
_KINDS = (
    frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"}),
    frozenset({"log", "ln", "lg"}),
    frozenset({"binom", "sum", "prod", "int", "lim", "max", "min", "gcd", "lcm", "det", "lfloor", "lceil"}),
)


def as_simple(gold: str, answer: str) -> bool:
    """Whether ``answer`` is an expression of the gold's kind, both in LaTeX of one spelling."""
    most = max((2.5 if _is_factored(answer) else 1.5) * size(gold), size(gold) + 3)
    if size(_NUMERIC_FRACTION.sub("1", answer)) > most:
        return False
    if any(_uses(kind, answer) and not _uses(kind, gold) for kind in _KINDS):
        return False
    return not (_has_undrawn_root(answer) and not _has_undrawn_root(gold))


def _is_factored(latex: str) -> bool:
    """Whether it is a product of brackets with polynomials in them."""
    outside = _BRACKET.sub("", latex)
    return "(" in latex and _POLYNOMIAL.fullmatch(latex) is not None and not re.search(r"[(+-]", outside.lstrip("- "))


def size(latex: str) -> int:
    """The number of numbers, letters, functions and operations that ``latex`` is written with."""
    return sum(token not in _NO_WEIGHT for token in _TOKEN.findall(latex))


def _uses(kind: frozenset[str], latex: str) -> bool:
    return not kind.isdisjoint(re.findall(r"\\([a-zA-Z]+)", latex))


def _has_undrawn_root(latex: str) -> bool:
    """Whether a square root of an integer holds a square above 1, or a root stands directly under another."""
    return _ROOT_OF_ROOT.search(latex) is not None or any(
        int(radicand) % (factor * factor) == 0
        for radicand in _ROOT_OF_INTEGER.findall(latex)
        for factor in range(2, isqrt(min(int(radicand), 10**6)) + 1)
    )

"""Is this answer that gold? Structure is compared here; two expressions are left to a judge that can do algebra.

The rules, where one has to be chosen:

- A gold that is a plain number wants a plain number: an expression copied from the question is no answer to it. Any
  plain number of the same value will do (``0.5`` for ``1/2``, ``2/4`` for ``1/2``), with or without a unit where the
  gold leaves it open; what it was computed from may stand before it (``2^3 = 8``, not ``2^3``). A rounded number equals
  nothing but itself. A gold ``0.15`` or ``4.5`` answers a question that asks for a decimal, so ``3/20`` and ``9/2`` are
  no answers; ``1/2`` for ``0.5`` is, like all tenths and larger parts of 1.
- An expression is to be as simple as the gold: `rewards.verifiers.math_answer.simplicity`.
- A ratio ``2:3`` may be a fraction, or ``4:6``; what can be a time of day is not reduced.
- Two units must be the same; what holds π is in radians. Percent: ``12.5%`` equals ``12.5`` and ``0.125``; a gold
  ``12.5`` without the sign takes ``12.5%`` above 1.
- Order counts in brackets ``( )`` and does not in braces or in a list. A list is no point and no vector, unless it
  names its coordinates (``x = 1, y = 2``); a point is a column or row vector, or a sum of unit vectors. An open
  interval may be written for a point, since they look alike. A set of one may go without its braces.
- A name before a value (``x = 5``) may be left out or added; where both have one they must be the same. ``x^2 = 5``
  and ``6 = 5`` name nothing, and no equation is solved: ``x + 2 = 0`` is not ``x = -2``. The letter of a choice is such
  a name too: ``(C) 12`` is C, and 12.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from rewards.verifiers.math_answer.forms import (
    BasedNumber,
    Expression,
    Form,
    Interval,
    Listing,
    Matrix,
    Named,
    Number,
    Relation,
    Row,
    Union,
    Words,
)
from rewards.verifiers.math_answer.reading import read
from rewards.verifiers.math_answer.relations import as_equation
from rewards.verifiers.math_answer.simplicity import as_simple
from rewards.verifiers.math_answer.units import DEGREE, PERCENT

AlgebraJudge: TypeAlias = Callable[[Expression | Relation | Number, Expression | Relation | Number], bool | None]
"""Whether two expressions, or two relations, say the same; ``None`` = not known here."""


def same(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether ``answer`` is right when ``gold`` is; ``None`` where that hangs on what ``algebra`` does not know."""
    if isinstance(gold, Named) or isinstance(answer, Named):
        return _same_named(gold, answer, algebra)
    match gold, answer:
        case Number(), Number():
            return _same_number(gold, answer)
        case Expression(), Expression():
            comparable = _same_measure(gold, answer) and as_simple(gold.latex, answer.latex)
            return comparable and algebra(gold, answer)
        case Expression(), Number():
            return _compatible(gold.unit, answer.unit) and algebra(gold, answer)
        case Words(), Words():
            return gold == answer or _same_ratio(gold.text, answer.text) or _time_of_day(answer.text) == gold.text
        case BasedNumber(), BasedNumber():
            return gold == answer
        case Words(), Number():
            return _same_ratio(gold.text, f"{answer.value.numerator}:{answer.value.denominator}")
        case Number(is_fraction=True), Words():
            return _same_ratio(f"{gold.value.numerator}:{gold.value.denominator}", answer.text)
        case Number(), Relation(sign="="):  # 2^3 = 8
            result = read(answer.right)
            return (
                isinstance(result, Number) and _same_number(gold, result) and algebra(Expression(answer.left), result)
            )
        case Relation(), Relation():
            return algebra(gold, answer)
        case Listing(), Listing():
            return _same_in_any_order(gold.items, answer.items, algebra)
        case Union(), Union():
            return _same_in_any_order(gold.pieces, answer.pieces, algebra)
        case Interval(), Interval():
            closed = (gold.left_closed, gold.right_closed) == (answer.left_closed, answer.right_closed)
            return closed and _same_in_order(_ends(gold), _ends(answer), algebra)
        case Matrix(), Matrix():
            return _same_matrix(gold, answer, algebra)
        case Matrix(), Interval(left_closed=True, right_closed=True):
            return _same_row(gold, Row(_ends(answer)), algebra)
        case Listing(items=(only,), braces=True), Number() | Expression():
            return same(only, answer, algebra)
        case Number() | Expression(), Listing(items=(only,), braces=True):
            return same(gold, only, algebra)
    return _same_row(gold, answer, algebra)


def _same_number(gold: Number, answer: Number) -> bool:
    if answer.is_fraction and not gold.is_fraction and not _may_replace_a_decimal(answer.value):
        return False
    if gold.unit == answer.unit:
        return gold.value == answer.value
    if gold.unit == PERCENT and not answer.unit:
        return answer.value in (gold.value, gold.value / 100)
    if answer.unit == PERCENT and not gold.unit:
        return gold.value == answer.value / 100 or (gold.value == answer.value and abs(gold.value) > 1)
    return _compatible(gold.unit, answer.unit) and gold.value == answer.value


def _may_replace_a_decimal(fraction: Fraction) -> bool:
    return fraction.denominator == 1 or (abs(fraction) < 1 and fraction.denominator <= 10)


def _compatible(gold_unit: str, answer_unit: str) -> bool:
    return not gold_unit or not answer_unit or gold_unit == answer_unit


def _same_measure(gold: Expression, answer: Expression) -> bool:
    r"""Whether the units agree. Only a plain number can be meant in degrees without the sign: π is in radians."""
    if {gold.unit, answer.unit} == {DEGREE, ""} and "\\pi" in gold.latex:
        return False
    return _compatible(gold.unit, answer.unit)


def _same_ratio(gold: str, answer: str) -> bool:
    """Whether both are ratios ``2:3`` of the same value; what may be a time of day, ``3:30``, is not reduced."""
    if not re.fullmatch(r"\d+(:\d+)+", gold) or not re.fullmatch(r"\d+(:\d+)+", answer):
        return False
    terms, other = ([int(term) for term in ratio.split(":")] for ratio in (gold, answer))
    if re.fullmatch(r"\d{1,2}:[0-5]\d", gold) or len(terms) != len(other) or not all(terms + other):
        return terms == other and len(gold) == len(answer)
    return all(term * other[0] == match * terms[0] for term, match in zip(terms, other, strict=True))


def _time_of_day(text: str) -> str:
    """A time without a.m. or p.m., which a gold may leave open."""
    return text[:-2] if ":" in text and text.endswith(("am", "pm")) else text


def _same_named(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    if isinstance(gold, Named) and isinstance(answer, Named):
        if gold.name == answer.name:
            return same(gold.value, answer.value, algebra)
        return _as_equation(gold, answer, algebra)
    if isinstance(gold, Named):
        if isinstance(answer, Relation):
            return _as_equation(gold, answer, algebra)
        return same(gold.value, answer, algebra)
    assert isinstance(answer, Named)
    if isinstance(gold, Words) and answer.name == f"({gold.text})":  # (C) 12, of an answer to choose
        return True
    if isinstance(gold, Relation):
        return _as_equation(gold, answer, algebra)
    return same(gold, answer.value, algebra)


def _as_equation(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether two equations are the same line or curve. ``x = 5`` wants ``5 = x`` and no equation to be solved."""
    left, right = as_equation(gold), as_equation(answer)
    if left is None or right is None:
        return False
    if isinstance(gold, Named) and isinstance(gold.value, Number):
        return right.right.strip() == gold.name and left.right == right.left
    return algebra(left, right)


def _same_in_order(gold: tuple[Form, ...], answer: tuple[Form, ...], algebra: AlgebraJudge) -> bool | None:
    if len(gold) != len(answer):
        return False
    verdicts = [same(one, other, algebra) for one, other in zip(gold, answer, strict=True)]
    return False if False in verdicts else None if None in verdicts else True


def _same_in_any_order(gold: tuple[Form, ...], answer: tuple[Form, ...], algebra: AlgebraJudge) -> bool | None:
    if len(gold) != len(answer) or not _names_fit(gold, answer):
        return False
    left, known = list(answer), True
    for one in gold:
        verdicts = [same(one, other, algebra) for other in left]
        if True in verdicts:
            del left[verdicts.index(True)]
        elif None in verdicts:
            known = False
        else:
            return False
    return True if known else None


def _names_fit(gold: tuple[Form, ...], answer: tuple[Form, ...]) -> bool:
    """Several names (x = 1, y = 2) must be given on both sides: without them the order would have to count."""
    names = [{form.name for form in forms if isinstance(form, Named)} for forms in (gold, answer)]
    return names[0] == names[1] if max(map(len, names)) > 1 else True


def _ends(interval: Interval) -> tuple[Form, ...]:
    return interval.left, interval.right


def _same_matrix(gold: Matrix, answer: Matrix, algebra: AlgebraJudge) -> bool | None:
    if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
        return False
    return _same_in_order(sum(gold.rows, ()), sum(answer.rows, ()), algebra)


def _same_row(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    rows = _as_row(gold), _as_row(answer)
    return False if rows[0] is None or rows[1] is None else _same_in_order(rows[0], rows[1], algebra)


def _as_row(form: Form) -> tuple[Form, ...] | None:
    match form:
        case Row():
            return form.items
        case Matrix() if len(form.rows) == 1:
            return form.rows[0]
        case Matrix() if form.rows and all(len(row) == 1 for row in form.rows):
            return tuple(row[0] for row in form.rows)
        case Listing() if named := {item.name: item.value for item in form.items if isinstance(item, Named)}:
            return tuple(named[name] for name in sorted(named)) if len(named) == len(form.items) else None
        case Interval() if not form.left_closed and not form.right_closed:
            return _ends(form)
    return None

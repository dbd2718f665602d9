"""Is this answer that gold? Structure is compared here; two expressions are left to a judge that can do algebra.

The rules, where one has to be chosen:

- A gold that is a plain number wants a plain number: an expression copied from the question is no answer to it. Any
  plain number of exactly the same value will do (``0.5`` for ``1/2``, ``2/4`` for ``1/2``, ``15/2`` for ``7.5``), with
  or without a unit where the gold leaves it open. A rounded number equals nothing but itself: ``0.333`` is not ``1/3``.
- What a result was computed from may stand before it (``2^3 = 8``, not ``2^3``) if it is that result, and what it is
  about behind it (``\\sqrt2 \\approx 1.41``) if it rounds to that. ``\\approx 3.14`` alone answers a gold decimal.
- An expression is to be as simple as the gold: `rewards.verifiers.math_answer.simplicity`.
- A ratio ``2:3`` may be a fraction, or ``4:6``; what can be a time of day is not reduced.
- Two units must be the same; what holds π is in radians. Percent: ``12.5%`` equals ``12.5`` and ``0.125``; a gold
  ``12.5`` without the sign takes ``12.5%`` above 1.
- Order counts in brackets ``( )`` and does not in braces or in a list. A list is no point and no vector, unless it
  names its coordinates (``x = 1, y = 2``): these go by their names where the gold has them too, else in the order in
  which such names are given (neighbours in the alphabet, numbered ones, (r, θ)), and others in the order written. A
  point is a column or row vector, or a sum of unit vectors. A pair for an open interval is right; a gold that is a
  pair, ``(2, 4)``, may be a point, so that no inequality equals it. A set of one may go without its braces. Numbered
  names (``x_1 = 2, x_2 = 5``) may count the values of a list; where the gold has them, a bare list is in their order.
- A name before a value (``x = 5``, ``P(X=2) = 5``, also ``x + y = 5``) may be left out or added; where both have one
  they must be the same. ``x^2 = 5``, ``2x = 5`` and ``6 = 5`` name nothing, and no equation is solved: ``x + 2 = 0`` is
  not ``x = -2``. The letter of a choice is such a name too: ``(C) 12`` is C, and 12.
- A sentence with mathematics in it wants its words, each and in order; only the mathematics may be written otherwise.
- "For all x" and ", k ∈ ℤ" may be left out; two different sets are two answers.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from rewards.verifiers.math_answer.cases import same_cases
from rewards.verifiers.math_answer.congruences import as_congruence, is_residue, same_congruence
from rewards.verifiers.math_answer.dates import same_time, total_of
from rewards.verifiers.math_answer.forms import (
    About,
    BasedNumber,
    Cases,
    Congruence,
    Expression,
    Form,
    Interval,
    Listing,
    Matrix,
    Measures,
    Named,
    Number,
    Prose,
    Quantified,
    Relation,
    Row,
    Union,
    Words,
    Worked,
)
from rewards.verifiers.math_answer.names import in_customary_order, is_doubtful, same_name
from rewards.verifiers.math_answer.notation import without_spaces
from rewards.verifiers.math_answer.relations import as_equation
from rewards.verifiers.math_answer.sets import names_of
from rewards.verifiers.math_answer.simplicity import as_simple
from rewards.verifiers.math_answer.values import compatible, same_measure, same_number, same_ratio

AlgebraJudge: TypeAlias = Callable[
    [Expression | Relation | Number | About, Expression | Relation | Number], bool | None
]
"""Whether two expressions or relations say the same, or one rounds to what it is about; ``None`` = not known here."""


def same(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether ``answer`` is right when ``gold`` is; ``None`` where that hangs on what ``algebra`` does not know."""
    for compare in (_same_about, _same_related, _same_value, _same_collection):
        verdict = compare(gold, answer, algebra)
        if not isinstance(verdict, _Other):
            return verdict
    return _same_row(gold, answer, algebra)


class _Other:
    """These are forms that another comparison is for."""


_OTHER = _Other()


def _same_about(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | _Other | None:
    """What says more than a value: for which letters, from which steps, about which number."""
    match gold, answer:
        case (Quantified(), Congruence() | Named(value=Congruence())) | (Congruence(), Quantified()):
            return _OTHER
        case (Quantified(), _) | (_, Quantified()):
            domains = {form.domain for form in (gold, answer) if isinstance(form, Quantified)}
            value, other = (form.value if isinstance(form, Quantified) else form for form in (gold, answer))
            return len(domains - {""}) < 2 and same(value, other, algebra)
        case Worked(), Worked() if gold == answer:
            return True
        case Worked(), _:
            ends = [gold.result] if gold.about is None else [gold.result, gold.about.value]
            return _any(same(end, answer, algebra) for end in ends)
        case _, Worked():
            return _all([same(gold, answer.result, algebra), *_steps(answer, algebra)])
        case About(), _:
            return same(gold.value, answer.value if isinstance(answer, About) else answer, algebra)
        case Number(is_decimal=True), About():
            return same_number(gold, answer.value)
        case _, About():
            return False
    return _OTHER


def _same_related(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | _Other | None:
    """Names and equations."""
    ours, theirs = _unknowns(gold), _unknowns(answer)
    if not (isinstance(gold, Listing) and isinstance(answer, Listing)) and (ours or theirs):
        return _same_unknowns(gold, answer, ours, theirs, algebra)
    match gold, answer:
        case (Named(), _) | (_, Named()):
            return _same_named(gold, answer, algebra)
        case Relation(), Relation():
            if gold.is_between_numbers or answer.is_between_numbers:
                return _same_sides(gold, answer)
            return algebra(gold, answer)
        case Relation(answer=Worked() as worked), _ if gold.is_between_numbers:
            return _all([same(worked.result, answer, algebra), *_steps(worked, algebra)])
        case _, Relation(answer=value) if value is not None:
            return same(gold, value, algebra)
    return _OTHER


def _same_value(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | _Other | None:
    """Single values."""
    match gold, answer:
        case Number(), Number():
            return same_number(gold, answer)
        case Expression(), Expression():
            comparable = same_measure(gold, answer) and as_simple(gold.latex, answer.latex)
            return comparable and algebra(gold, answer)
        case Expression(), Number():
            return compatible(gold.unit, answer.unit) and algebra(gold, answer)
        case Words(), Words():
            return gold == answer or same_ratio(gold.text, answer.text) or same_time(gold.text, answer.text)
        case (Measures(), Measures() | Number()) | (Number(), Measures()):
            return total_of(gold) == total_of(answer)
        case Cases(), Cases():
            return same_cases(gold, answer, lambda one, other: same(one, other, algebra))
        case Number(), Congruence():
            return is_residue(gold, answer)
        case (Congruence(), _) | (Quantified(), Congruence()):
            ours, theirs = as_congruence(gold), as_congruence(answer)
            return ours is not None and theirs is not None and same_congruence(ours, theirs)
        case BasedNumber(), BasedNumber():
            return gold == answer
        case Words(), Number():
            return same_ratio(gold.text, f"{answer.value.numerator}:{answer.value.denominator}")
        case Number(is_fraction=True), Words():
            return same_ratio(f"{gold.value.numerator}:{gold.value.denominator}", answer.text)
    return _OTHER


def _same_collection(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | _Other | None:
    """Sentences, lists, sets, intervals and matrices."""
    match gold, answer:
        case Prose(), Prose():
            return _same_in_order(gold.pieces, answer.pieces, algebra)
        case Listing(), Listing():
            return _same_listing(gold, answer, algebra)
        case Union(), Union():
            pieces = [tuple(map(_as_interval, union.pieces)) for union in (gold, answer)]
            return _same_in_any_order(pieces[0], pieces[1], algebra)
        case Interval(left_closed=False, right_closed=False), Row(is_vector=False):
            return _same_in_order(_ends(gold), answer.items, algebra)
        case Row(is_vector=False), Interval(is_pair=True):
            return _same_in_order(gold.items, _ends(answer), algebra)
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
    return _OTHER


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all hold: one that does not settles it."""
    known = True
    for verdict in verdicts:
        if verdict is False:
            return False
        known = known and verdict is not None
    return True if known else None


def _any(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether one holds."""
    denied = _all(None if verdict is None else not verdict for verdict in verdicts)
    return None if denied is None else not denied


def _steps(worked: Worked, algebra: AlgebraJudge) -> Iterator[bool | None]:
    """Whether each step is the result, and the result about what it is said to be."""
    for step in worked.steps:
        yield _equal(step, worked.result, algebra)
    if worked.about is not None:
        yield _about(worked.about, worked.result, algebra)


def _equal(step: Form, result: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether a result was computed from this, however far from simple."""
    match step, result:
        case Number(), Number():
            return same_number(step, result)
        case ((Number() | Expression()), (Number() | Expression())):
            return compatible(step.unit, result.unit) and algebra(result, step)
    return step == result


def _about(number: About, value: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether a value is about a number; both of the same unit if both have one."""
    if isinstance(value, Named):
        return _about(number, value.value, algebra)
    if not isinstance(value, Number | Expression) or not compatible(number.value.unit, value.unit):
        return False
    return algebra(number, value)


def _same_named(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    match gold, answer:
        case Named(), Named() if same_name(gold.name, answer.name):
            return same(gold.value, answer.value, algebra)
        case (Named(), Named() | Relation()) | (Relation(), Named()):
            return _as_equation(gold, answer, algebra)
        case Named(), _:
            return same(gold.value, answer, algebra)
        case Words(), Named() if answer.name == f"({gold.text})":  # (C) 12, of an answer to choose
            return True
    assert isinstance(answer, Named)
    if is_doubtful(answer.name) or (answer.name.endswith("^-1") and not isinstance(gold, Matrix)):
        return False
    return same(gold, answer.value, algebra)


def _unknowns(form: Form) -> dict[str, Form]:
    """The values of several unknowns by their names, as they are written: ``x = 1, y = 2``, ``(x, y) = (1, 2)``."""
    match form:
        case Listing() if len(form.items) > 1:
            named = {item.name: item.value for item in form.items if isinstance(item, Named)}
            return named if len(named) == len(form.items) else {}
        case Named(value=Row() | Matrix() as value) if form.name.startswith("("):
            names, values = form.name[1:-1].split(","), _as_row(value) or ()
            return dict(zip(names, values, strict=True)) if len(set(names)) == len(values) else {}
    return {}


def _same_unknowns(
    gold: Form, answer: Form, ours: dict[str, Form], theirs: dict[str, Form], algebra: AlgebraJudge
) -> bool | None:
    """By their names where both have them, else in the gold's own order, or that in which such names are given."""
    if ours and theirs:
        return ours.keys() == theirs.keys() and _all(same(ours[name], theirs[name], algebra) for name in ours)
    names = tuple(ours or theirs)
    if any(is_doubtful(name) for name in theirs):
        return False
    if not isinstance(gold, Named):
        names = in_customary_order(names)
    values = tuple((ours or theirs)[name] for name in names)
    row = _as_row(answer if ours else gold)
    if row is None:
        return False
    return _same_in_order(values, row, algebra) if ours else _same_in_order(row, values, algebra)


def _as_equation(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether two equations are the same line or curve. ``x = 5`` wants ``5 = x`` and no equation to be solved."""
    left, right = as_equation(gold), as_equation(answer)
    if left is None or right is None:
        return False
    if isinstance(gold, Named) and isinstance(gold.value, Number):
        return right.right.strip() == gold.name and left.right == right.left
    return algebra(left, right)


def _same_sides(gold: Relation, answer: Relation) -> bool:
    """Whether an equation between numbers is the same one, perhaps turned round: every true one is as true."""
    sides, others = (
        [without_spaces(re.sub(r"[(){}]", " ", side)).strip() for side in (relation.left, relation.right)]
        for relation in (gold, answer)
    )
    turned = gold.sign in ("=", "\\ne") and not all(side.isdigit() for side in sides)  # 5 = 6 is no answer, nor 6 = 5
    return gold.sign == answer.sign and (sides == others or (turned and sides == others[::-1]))


def _same_listing(gold: Listing, answer: Listing, algebra: AlgebraJudge) -> bool | None:
    """In any order; names may number the values (``x_1 = 2, x_2 = 5``), and do not count then."""
    names, others = names_of(gold), names_of(answer)
    if names == others or max(len(names), len(others)) < 2:
        return _same_in_any_order(gold.items, answer.items, algebra)
    if not _number_one_letter(names | others):  # x = 1, y = 2 without its names would have to be in order
        return False
    values, other_values = (
        tuple(item.value if isinstance(item, Named) else item for item in listing.items) for listing in (gold, answer)
    )
    return (_same_in_order if not others else _same_in_any_order)(values, other_values, algebra)


def _number_one_letter(names: set[str]) -> bool:
    """Whether names are a letter and its numbered kin: ``x_1``, ``x_2``, ``x``."""
    return len({name.partition("_")[0] for name in names}) == 1 and all(
        name.partition("_")[2] in ("", *"123456789") for name in names
    )


def _same_in_order(gold: Sequence[str | Form], answer: Sequence[str | Form], algebra: AlgebraJudge) -> bool | None:
    if len(gold) != len(answer):
        return False
    return _all(
        one == other if isinstance(one, str) or isinstance(other, str) else same(one, other, algebra)
        for one, other in zip(gold, answer, strict=True)
    )


def _same_in_any_order(gold: tuple[Form, ...], answer: tuple[Form, ...], algebra: AlgebraJudge) -> bool | None:
    if len(gold) != len(answer):
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


def _ends(interval: Interval) -> tuple[Form, ...]:
    return interval.left, interval.right


def _as_interval(piece: Form) -> Form:
    """A piece of a union, where a pair is an interval."""
    match piece:
        case Row(items=(left, right), is_vector=False):
            return Interval(left, right, left_closed=False, right_closed=False)
    return piece


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
    return None

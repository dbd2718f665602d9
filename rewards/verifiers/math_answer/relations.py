"""What stands with a sign between its sides: names and values, inequalities, equations."""

import re
from collections.abc import Callable
from fractions import Fraction

from rewards.verifiers.math_answer.forms import (
    About,
    Expression,
    Form,
    Interval,
    Listing,
    Named,
    Number,
    Relation,
    Row,
    Unreadable,
    Words,
    Worked,
)
from rewards.verifiers.math_answer.names import is_asked_for, is_name, squeezed
from rewards.verifiers.math_answer.notation import split_outside_brackets
from rewards.verifiers.math_answer.sets import INFINITY, MINUS_INFINITY, reals_without

_IN = re.compile(r"\\in(?![a-zA-Z])")
_SIGN = re.compile(r"<=|>=|(?<![\d)}])!=|[=<>]|\\(?:le|ge|ne|approx|equiv|sim)(?![a-zA-Z])")
_SIGNS = {"<=": "\\le", ">=": "\\ge", "!=": "\\ne"}
_TURNED = {">": "<", "\\ge": "\\le"}


def named_number(text: str, form: Callable[[str], Form]) -> Form | None:
    """``x = 10,080``, whose comma would else separate."""
    name, _, written = text.partition("=")
    if "," not in written or not is_name(name):
        return None
    number = form(written.strip())
    return Named(squeezed(name), number) if isinstance(number, Number) else None


def related(text: str, form: Callable[[str], Form]) -> Form | None:
    """A relation, or what it says of a name; ``form`` reads the sides."""
    belongs = split_outside_brackets(text, _IN)
    if len(belongs) == 2 and is_name(belongs[0]):
        value = form(belongs[1])
        if isinstance(value, Row) and len(value.items) == 2 and "," not in belongs[0]:
            value = Interval(*value.items, left_closed=False, right_closed=False, is_pair=True)
        return Named(squeezed(belongs[0]), value)
    sides = [side.strip() for side in split_outside_brackets(text, _SIGN)]
    if len(sides) == 1:
        return None
    signs = _signs_between(text)
    if signs[-1] == "\\approx" and set(signs[:-1]) <= {"="}:
        return _approximate(sides, form)
    if not all(sides) or any(sign in ("\\approx", "\\equiv", "\\sim") for sign in signs):
        return Unreadable("it is a chain of relations, or an approximate one")
    if set(signs) == {"="}:
        return _equated(sides, form)
    if len(sides) > 3:
        return Unreadable("it is a chain of relations")
    return _between(sides, signs, form) if len(sides) == 3 else _one_relation(sides[0], sides[1], signs[0], form)


def _approximate(sides: list[str], form: Callable[[str], Form]) -> Form:
    """``\\approx 3.14``, ``x \\approx 3.14``, ``\\sqrt2 \\approx 1.41``, ``x = \\sqrt2 \\approx 1.41``."""
    *exact, last = sides
    number = form(last)
    if not isinstance(number, Number) or not all(exact[1:]):
        return Unreadable("it is about what is no number")
    if not exact[0]:
        return About(number)
    if len(exact) == 1 and is_name(exact[0]):
        return Named(squeezed(exact[0]), About(number))
    value = form(exact[0]) if len(exact) == 1 else _equated(exact, form)
    if isinstance(value, Named):
        return Named(value.name, Worked((), value.value, About(number)))
    return Worked((), value, About(number))


def _equated(sides: list[str], form: Callable[[str], Form]) -> Form:
    """What equals signs alone connect: a name and its value, with the steps between, or an equation."""
    if is_name(sides[0]):
        return Named(squeezed(sides[0]), _worked(sides[1:], form))
    if len(sides) > 2:
        asked_for = is_asked_for(sides[0])
        answer = _worked(sides[asked_for:], form)
        return Relation("=", sides[0], sides[-1], answer) if asked_for else answer
    left, right = sides
    if is_asked_for(left):
        value = form(right)
        is_condition = value == Number(Fraction(0))  # a + b + c = 0 is what a question starts from
        return Relation("=", left, right, None if is_condition or isinstance(value, Unreadable) else value)
    if any(isinstance(form(side), Unreadable | Words) for side in sides):
        return Unreadable("it mixes words and mathematics")
    return Relation("=", left, right, _worked(sides, form))


def _worked(sides: list[str], form: Callable[[str], Form]) -> Form:
    *steps, result = [form(side) for side in sides]
    return Worked(tuple(steps), result) if steps else result


def _one_relation(left: str, right: str, sign: str, form: Callable[[str], Form]) -> Form:
    if sign in _TURNED:
        left, right, sign = right, left, _TURNED[sign]
    if sign in ("<", "\\le") and is_name(left):
        return Named(squeezed(left), Interval(MINUS_INFINITY, form(right), False, sign == "\\le"))
    if sign in ("<", "\\le") and is_name(right):
        return Named(squeezed(right), Interval(form(left), INFINITY, sign == "\\le", False))
    if sign == "\\ne" and is_name(right) and not is_name(left):
        left, right = right, left
    if sign == "\\ne" and is_name(left) and isinstance(point := form(right), Number | Listing):
        return Named(squeezed(left), reals_without(list(point.items) if isinstance(point, Listing) else [point]))
    if any(isinstance(form(side), Unreadable | Words) for side in (left, right)):
        return Unreadable("it mixes words and mathematics")
    return Relation(sign, left, right)


def _between(sides: list[str], signs: list[str], form: Callable[[str], Form]) -> Form:
    if all(sign in _TURNED for sign in signs):
        sides, signs = sides[::-1], [_TURNED[sign] for sign in signs[::-1]]
    if not is_name(sides[1]) or not set(signs) <= {"<", "\\le"}:
        return Unreadable("it is a chain of relations")
    return Named(squeezed(sides[1]), Interval(form(sides[0]), form(sides[2]), signs[0] == "\\le", signs[1] == "\\le"))


def _signs_between(text: str) -> list[str]:
    signs, position = [], 0
    for side in split_outside_brackets(text, _SIGN)[:-1]:
        match = _SIGN.match(text, position + len(side))
        assert match is not None
        signs.append(_SIGNS.get(match[0], match[0]))
        position = match.end()
    return signs


def as_equation(form: Form) -> Relation | None:
    """The equation or inequality that a form is, if it is one with mathematics on both sides."""
    match form:
        case Relation():
            return form
        case Named(value=Expression() as value):
            return Relation("=", form.name, value.latex)
        case Named(value=Number() as value):
            return Relation("=", form.name, str(value.value))
        case Named(value=Interval(left=Expression() as left, right=Words("infinity"), left_closed=closed)):
            return Relation("\\le" if closed else "<", left.latex, form.name)
        case Named(value=Interval(left=Words("-infinity"), right=Expression() as right, right_closed=closed)):
            return Relation("\\le" if closed else "<", form.name, right.latex)
    return None

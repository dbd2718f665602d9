"""Is this answer that gold? Structure is compared here, by the rules of README.md; algebra is a judge's."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import TypeAlias

from evenkeel.rewards.verifiers.math_answer.forms import (
    About,
    Congruence,
    Expression,
    Form,
    Interval,
    Listing,
    Matrix,
    Named,
    Number,
    Quantified,
    Relation,
    Row,
    Union,
    Words,
    Worked,
    units_in,
)
from evenkeel.rewards.verifiers.math_answer.names import in_customary_order, is_doubtful, is_plain_name, same_name
from evenkeel.rewards.verifiers.math_answer.notation import NOTATION
from evenkeel.rewards.verifiers.math_answer.quantities import DEGREE, LENGTHS, PERCENT, SIGNED, is_everyday, may_be_in

AlgebraJudge: TypeAlias = Callable[
    [Expression | Relation | Number | About, Expression | Relation | Number], bool | None
]
"""Whether two expressions or relations say the same, or one rounds to what it is about; ``None`` = not known here."""

_TOKEN = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[a-zA-Z]|[+\-*/^!|]")
_NO_WEIGHT = {"\\cdot", "\\times", "\\text", "\\circ", "*"}
_NUMERIC_FRACTION = re.compile(r"\\frac\{ ?\d+ ?\}\{ ?\d+ ?\}")  # as simple as a decimal
_ROOT_OF_INTEGER = re.compile(r"\\sqrt\{ ?(\d{1,9})(?![\d.!^])[^{}+-]*\}")
_ROOT_OF_ROOT = re.compile(r"\\sqrt(?:\[\d+\])?\{ ?\\sqrt")
_POLYNOMIAL = re.compile(r"(?:[a-zA-Z\d ()+-]|\^ ?\{?\d\}?)+")
_PRIME_POWERS = re.compile(r"\d+(?: ?\^ ?\{?\d+\}?)?(?: ?\\(?:cdot|times) ?\d+(?: ?\^ ?\{?\d+\}?)?)+")
_SQUARED = re.compile(r"\([^()]*[a-z][^()]*\)\^ ?\{?2(?!\d)")
_SUM = re.compile(r"\((?=[^()]*[a-zA-Z])[^()]*[+-][^()]*\)")
_SIZE = re.compile(r"\w+ ?\\times ?\w+|[a-z]{3,}")  # of a matrix; a word, as box may be
_IRRATIONAL = re.compile(r"\\pi(?![a-z])|\\sqrt ?\{[^{}]*\}")
_ARITHMETIC = re.compile(
    r"(?<![\d.^{_])[\d.]+ ?"
    r"(?:[-+] ?[\d.]+(?![\d. ]*[\^a-z!\\{(/])|(?:\*|\\cdot|\\times) ?-?[\d.]+(?![\d. ]*[\^!{]))"
    r"|\d ?\( ?\d[^()+-]*\)"
)
_VARIABLE = r"(?<![\\a-zA-Z])[a-df-hj-zA-Z]"
_GREEK = re.compile(rf"\\(?:{'|'.join(NOTATION['greek'].keys() - {'pi'})})(?![a-z])")
_ROOT = re.compile(r"\||\\(?:sqrt|ln|log|lg)(?![a-z])|\^ ?\{ ?-?(?:\\frac|\d+/|\d*\.)")
_INVERSE = re.compile(r"\\(sin|cos|tan|cot|sec|csc) ?\^ ?\{ ?-1 ?\}")
_PARTIAL_FUNCTION = re.compile(
    rf"\\frac ?\{{[^{{}}]*(?:\{{[^{{}}]*\}}[^{{}}]*)*\}} ?\{{[^{{}}]*{_VARIABLE}|/ ?(?:\([^()]*)?{_VARIABLE}"
    rf"|\\(?:sqrt|ln|log|lg|tan|cot|sec|csc|arcsin|arccos) ?(?:[_^\[][^ ]* ?)?[({{ ]*[^(){{}}]*{_VARIABLE}"
    r"|[a-zA-Z)}] ?\^ ?\{? ?(?:-|\\frac|\d+/)"
)
_PARTIAL = re.compile(r"\\frac ?\{[^{}]*\} ?\{[^{}]*[a-z][^{}]*\}")
_PARTIAL_OF_SUM = re.compile(
    r"\\frac ?\{[^{}]*\} ?\{[^{}]*[a-z][^{}]*[+-][^{}]*\}"
    r"|\\frac ?\{ ?\d+ ?\} ?\{[^{}]*[a-z][^{}]*\}.*\\frac ?\{ ?\d+ ?\} ?\{[^{}]*[a-z]"
)
_LETTERS = re.compile(
    r"(?<![\\a-zA-Z_])[a-df-hj-zA-Z](?![a-zA-Z_])"
    r"|(?<=\d)[a-df-hj-zA-Z](?![a-z_])|\\(?:theta|alpha|beta|phi|lambda)"
)
_BRACKET = re.compile(r"\([^()]*\)")
_KINDS = tuple(frozenset(kind.split()) for kind in NOTATION["kinds of functions"])
_MULTIPLE = re.compile(r"(?:(?P<first>-?\d+) ?\+ ?)?(?P<modulus>\d+) ?(?P<letter>[j-nq-t])(?: ?(?P<last>[+-] ?\d+))?")
_MULTIPLE_OF_PI = re.compile(r"(?=.*\\pi)(?=.*(?:\\frac|/))(?:\\pi|\\frac|[\d {}/-])+")
_NO_DEGREES = re.compile(r"\\(?:pi|sqrt|[a-z]*(?:sin|cos|tan|cot|ln|log|exp))(?![a-z])")
_RIGHT_ANGLES = re.compile(r"(?<!\d)(?:90|180|270|360)(?!\d)")
_IN_ANOTHER_MEASURE = re.compile(r" in |fraction|probability|ratio|proportion")
_POLAR = re.compile(r"\(? ?\\cos ?(?P<angle>.{1,30}?) ?\+ ?i ?\\sin ?(?P=angle) ?\)?")


def same(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether ``answer`` is right when ``gold`` is; ``None`` where that depends on what ``algebra`` does not know."""
    if not units_in(gold) and (units := units_in(answer)) and not _may_be_measured(gold, answer, units):
        return False
    takes_names = isinstance(gold, Number | Expression | Listing)
    if takes_names and isinstance(answer, Named | Relation) and not _is_plain(answer):
        return False
    match gold, answer:
        case (Expression(unit="") as arc, Number(unit="degree") as angle) | (
            Number(unit="degree") as angle,
            Expression(unit="") as arc,
        ) if abs(angle.value) <= 360 and _MULTIPLE_OF_PI.fullmatch(arc.latex):
            return algebra(Expression(f"\\frac{{{angle.latex} \\pi}}{{180}}"), arc)
        case (Congruence() | Named(value=Congruence()), _) | (
            Quantified(),
            Congruence() | Named(value=Congruence()),
        ) if (wanted := _as_congruence(gold)) and (given := _as_congruence(answer, wanted.name)):
            return wanted in (given, replace(given, name="")) and not is_doubtful(given.name)
        # what says more than a value: for which letters, from which steps, about which number
        case (Quantified(), _) | (_, Quantified()):
            quantified = [form for form in (gold, answer) if isinstance(form, Quantified)]
            domains, letters = ({getattr(form, of) for form in quantified} for of in ("domain", "letter"))
            for_some = "some" in str(domains) and (len(domains) > 1 or len(quantified) < 2)
            if for_some or len(domains - {""}) > 1 or len(letters - {""}) > 1:
                return False
            if len(quantified) < 2 and not _is_understood(quantified[0], is_gold=gold is quantified[0]):
                return False
            value, other = (form.value if isinstance(form, Quantified) else form for form in (gold, answer))
            return same(value, other, algebra)
        case Worked(), _:
            ends = [gold.result] if gold.about is None else [gold.result, gold.about.value]
            verdicts = [same(end, answer, algebra) for end in ends]
            return True in verdicts or (None if None in verdicts else False)
        case About(), Worked(about=About() as about):
            return _all([same_number(gold.value, about.value), *_steps(answer, algebra)])
        case _, Worked():
            return _all([same(gold, answer.result, algebra), *_steps(answer, algebra)])
        case About(), _:
            return same(gold.value, answer.value if isinstance(answer, About) else answer, algebra)
        case Number(is_fraction=False), About() if gold.value.denominator > 1:
            return same_number(gold, answer.value)
        case _, About():
            return False
        # names and equations
        case Listing(), Listing():
            return _same_listing(gold, answer, algebra)
        case _ if (ours := _unknowns(gold)) | (theirs := _unknowns(answer)):
            return _same_unknowns(gold, answer, ours, theirs, algebra)
        case (Named(), _) | (_, Named()):
            return _same_named(gold, answer, algebra)
        case Relation(), Relation() if gold.is_between_numbers or answer.is_between_numbers:
            return False  # a true one is as true as any other
        case Relation(), Relation():
            return algebra(gold, answer)
        case _, Relation(answer=value) if value is not None:
            return same(gold, value, algebra)
        # single values
        case Number(), Number():
            return same_number(gold, answer)
        case Expression(), Expression():
            comparable = same_measure(gold, answer) and _as_simple(gold.latex, answer.latex)
            return comparable and algebra(gold, answer)
        case Expression(), Number():
            written_out = _PRIME_POWERS.fullmatch(gold.latex)
            return not written_out and same_measure(gold, answer) and algebra(gold, answer)
        case Words(), Words():
            is_afternoon = gold.text.removesuffix("pm") == answer.text.removesuffix("pm")
            is_ratio = same_ratio(gold.text, answer.text.replace("to", ":"))
            is_counted = answer.text.removeprefix(gold.text) in (" solution", " solutions")
            return compatible(gold.text, answer.text) or is_ratio or is_afternoon or is_counted
        case Words(), Number(unit=""):
            return same_ratio(gold.text, f"{answer.value.numerator}:{answer.value.denominator}")
        case Number(is_fraction=True, unit=""), Words():
            return same_ratio(f"{gold.value.numerator}:{gold.value.denominator}", answer.text)
        # sets, intervals and matrices
        case Union(), Union():
            pieces = [tuple(map(_as_interval, union.pieces)) for union in (gold, answer)]
            return gold.sign == answer.sign and _same_in_any_order(pieces[0], pieces[1], algebra)
        case Interval(left_closed=False, right_closed=False), Row(is_vector=False):
            return _same_in_order(gold.ends, answer.items, algebra)
        case Row(items=(Number() as left, Number() as right), is_vector=False), Interval(is_pair=True):
            return left.value < right.value and _same_in_order(gold.items, answer.ends, algebra)
        case Interval(), Interval():
            closed = (gold.left_closed, gold.right_closed) == (answer.left_closed, answer.right_closed)
            return closed and _same_in_order(gold.ends, answer.ends, algebra)
        case Matrix(), Matrix():
            shapes = [[len(row) for row in matrix.rows] for matrix in (gold, answer)]
            return shapes[0] == shapes[1] and _same_in_order(sum(gold.rows, ()), sum(answer.rows, ()), algebra)
        case Matrix(), Interval(left_closed=True, right_closed=True):  # [1, 2]
            return same(gold, Row(answer.ends), algebra)
        case Listing(items=(only,), braces=True), Number() | Expression():
            return same(only, answer, algebra)
        case Number() | Expression(), Listing(items=(only,), braces=True):
            return same(gold, only, algebra)
        case (Listing(items=items, joined=joined), Words(text=letters) | Expression(latex=letters)) | (
            (Words(text=letters) | Expression(latex=letters)),
            Listing(items=items, joined=joined),
        ):  # A, C, D and ACD
            chosen = letters if isinstance(gold, Expression) else letters.upper()
            are_choices = joined != "or" and set(chosen) <= set("ABCDEFGH")
            return are_choices and sorted(map(repr, items)) == [repr(Words(letter)) for letter in chosen]
    row, other_row = _as_row(gold), _as_row(answer)
    return row is not None and other_row is not None and _same_in_order(row, other_row, algebra)


def _is_plain(answer: Named | Relation) -> bool:
    """Whether what stands before a value can be no more than its name: nothing that the value itself holds."""
    left, value = (answer.name, answer.value) if isinstance(answer, Named) else (answer.left, answer.answer)
    if isinstance(value, Worked):
        if isinstance(answer, Relation) and left in (getattr(step, "latex", "") for step in value.steps):
            return True
        value = value.result
    if isinstance(answer, Named) and isinstance(value, Listing):
        return all(_is_plain(Named(left, item)) for item in value.items)
    latex = value.latex if isinstance(value, Expression) else ""
    if len(left) > 1 and re.sub(r"[{} ]", "", left) in re.sub(r"[{} ]", "", latex):  # AB = 2AB
        return False
    if isinstance(answer, Relation):
        return set(_LETTERS.findall(latex)).isdisjoint(_LETTERS.findall(re.sub(r"\\text ?\{[^{}]*\}", "", left)))
    return is_plain_name(left, set(_LETTERS.findall(latex)), value.value if isinstance(value, Number) else None)


def _may_be_measured(gold: Form, answer: Form, units: set[str]) -> bool:
    """Whether an answer may have units where the gold has none: one, of a real value or of all in a list."""
    if isinstance(gold, Named):
        return "\\angle" in gold.name and units == {DEGREE}
    inner = answer.value if isinstance(answer, Named | Quantified) else answer
    if isinstance(inner, Worked | Relation):
        return True  # by their parts
    if len(units) > 1 or not all(map(is_everyday, units)):
        return False
    if isinstance(inner, Listing):
        return not inner.braces and all(map(units_in, inner.items))
    if isinstance(inner, Expression):
        return not re.search(r"(?<![\\a-zA-Z])[a-zA-Z]", _GREEK.sub("x", inner.latex))
    return isinstance(inner, About) or (isinstance(inner, Number) and (inner.value >= 0 or units <= SIGNED))


def _is_understood(quantified: Quantified, is_gold: bool) -> bool:
    """Whether a domain may be left out, or added: ℤ of k, m and n; ℕ of an index; ℝ may be left out."""
    form = quantified.value
    name, value = (form.name, form.value) if isinstance(form, Named) else ("", form)
    domain, letter = quantified.domain, quantified.letter
    if isinstance(value, Relation | Interval | Union) or name == letter:
        return False
    if letter in ("k", "m", "n") and domain == "Z":
        return letter not in name
    if name.endswith(f"({letter})") and domain in ("", "R"):
        return is_gold or _is_total(quantified.text)
    is_index = "_" in name or "(" in name or not (name or re.search(r"\\pi|\\circ", quantified.text))
    if letter == "n" and domain[:1] in ("N", "Z") and (is_gold or is_index):
        return True
    return domain in ("", "R") and (is_gold or letter in ("C", "c", ""))


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all hold: one that does not settles it."""
    known = True
    for verdict in verdicts:
        if verdict is False:
            return False
        known = known and verdict is not None
    return True if known else None


def _steps(worked: Worked, algebra: AlgebraJudge) -> Iterator[bool | None]:
    """Whether each step is the result, and the result about what it is said to be."""
    for step in worked.steps:
        if "dots" in getattr(step, "latex", "") and len(worked.steps) > 1:  # the others say what it is
            continue
        yield _equal(step, worked.result, algebra)
    if (number := worked.about) is not None:
        result = worked.result if isinstance(worked.result, Number | Expression) else None
        yield result is not None and compatible(number.value.unit, result.unit) and algebra(number, result)


def _equal(step: Form, result: Form, algebra: AlgebraJudge) -> bool | None:
    """Whether a result was computed from this, however far from simple."""
    match step, result:
        case Number(), Number():
            return same_number(step, result)
        case ((Number() | Expression()), (Number() | Expression())):
            return compatible(step.unit, result.unit) and algebra(result, step)
    return step == result


def _same_named(gold: Form, answer: Form, algebra: AlgebraJudge) -> bool | None:
    name, units = getattr(answer, "name", ""), () if units_in(answer) else units_in(gold)
    if any(_IN_ANOTHER_MEASURE.search(name) or not may_be_in(unit, name) for unit in units):
        return False
    match gold, answer:
        case Named(), Named() if same_name(gold.name, answer.name):
            return same(gold.value, answer.value, algebra)
        case (Named(), Named() | Relation()) | (Relation(), Named()):
            return _as_equation(gold, answer, algebra)
        case Named(value=Congruence()), Expression() if gold.name in answer.latex:  # 7x + 3 for x
            return False
        case Named(
            value=Interval(left=Expression(latex=low) | Words(low), right=Expression(latex=up) | Words(up))
        ), _ if 1 in (len(low), len(up)):
            return False  # a < b < c is an order, and no interval
        # both in it, and not one or the other
        case Named(value=Listing(braces=True)), Listing(braces=False):
            return False
        case Named(value=Number()), Words():  # P(A) = 2/5 is no 2:5
            return False
        case Named(value=Words()), Words() if ":" in gold.name and answer.text.endswith("m"):  # a:b = 13:20
            return False
        case Named(), _:
            return same(gold.value, answer, algebra)
        case Words(), Named() if answer.name == f"({gold.text})":  # (C) 12, of an answer to choose
            return True
    assert isinstance(answer, Named)
    if is_doubtful(answer.name) or (
        isinstance(answer.value, Interval) if isinstance(gold, Matrix) else "^-1" in answer.name[-3:]
    ):
        return False
    is_pair = answer.name.startswith("(") and "," in answer.name  # (x, y) = 5
    return not (is_pair and isinstance(answer.value, Number)) and same(gold, answer.value, algebra)


def _unknowns(form: Form) -> dict[str, Form]:
    """The values of several unknowns by their names, as they are written: ``x = 1, y = 2``, ``(x, y) = (1, 2)``."""
    match form:
        case Listing(alternatives=False) | Row() if len(form.items) > 1:
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
    if not isinstance(gold, Named) and not (names := in_customary_order(names)):
        return False
    values = tuple((ours or theirs)[name] for name in names)
    if (row := _as_row(answer if ours else gold)) is None:
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


def _same_listing(gold: Listing, answer: Listing, algebra: AlgebraJudge) -> bool | None:
    """In any order; names may number the values (``x_1 = 2, x_2 = 5``), and do not count then."""
    sets = [any(isinstance(item, Listing) and item.braces for item in listing.items) for listing in (gold, answer)]
    if gold.alternatives != answer.alternatives or sets[0] != sets[1]:  # {1}, {2} is not {1, 2}
        return False
    if (gold.joined, answer.joined) == ("and", "or"):
        return False
    relations = [any(isinstance(item, Relation) for item in listing.items) for listing in (gold, answer)]
    if relations[0] != relations[1]:  # a + b = 2, ab = 3 is not 2, 3
        return False
    numbers = [item for item in gold.items if isinstance(item, Number)]
    if not gold.braces and {number.is_fraction for number in numbers if number.value.denominator > 1} == {True, False}:
        return _same_in_order(gold.items, answer.items, algebra)  # 0.3, 1/3, 0.4 have been sorted
    names, others = gold.names, answer.names
    if not (names or others or gold.joined == "or") and _has_order(gold.items):
        return _same_in_order(gold.items, answer.items, algebra)
    if names == others or max(len(names), len(others)) < 2:
        return _same_in_any_order(gold.items, answer.items, algebra)
    letters, _, indices = zip(*(name.partition("_") for name in names | others), strict=True)
    # x = 1, y = 2 would have to be in order
    if len(set(letters)) > 1 or not set(indices) <= {*"123456789", ""}:
        return False
    values, other_values = (
        tuple(item.value if isinstance(item, Named) else item for item in listing.items) for listing in (gold, answer)
    )
    return (_same_in_order if not others else _same_in_any_order)(values, other_values, algebra)


def _has_order(items: tuple[Form, ...]) -> bool:
    """Whether items are a sequence or a ranking: five numbers, or three of them or of words that are not sorted."""
    values = [
        item.value if isinstance(item, Number) else getattr(item, "text", "") or getattr(item, "latex", "")
        for item in items
        if isinstance(item, Number | Words) or (isinstance(item, Expression) and len(item.latex) == 1)
    ]
    if len(values) < max(len(items), 3) or len({type(value) for value in values}) > 1:
        return False
    return values != sorted(values) or (len(values) > 4 and isinstance(values[0], Fraction))


def _same_in_order(gold: Sequence[Form], answer: Sequence[Form], algebra: AlgebraJudge) -> bool | None:
    if len(gold) != len(answer) or any(
        isinstance(other, Named) and not isinstance(one, Named) for one, other in zip(gold, answer, strict=True)
    ):
        return False
    return _all(same(one, other, algebra) for one, other in zip(gold, answer, strict=True))


def _same_in_any_order(gold: tuple[Form, ...], answer: tuple[Form, ...], algebra: AlgebraJudge) -> bool | None:
    """Whether each of ``gold`` has one of ``answer`` that is the same, in any order; ``None`` where it is not known."""
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


def _as_interval(piece: Form) -> Form:
    """A piece of a union, where a pair is an interval."""
    if isinstance(piece, Row) and len(piece.items) == 2 and not piece.is_vector:
        return Interval(*piece.items, left_closed=False, right_closed=False)
    return piece


def _as_row(form: Form) -> tuple[Form, ...] | None:
    match form:
        case Row():
            return form.items
        case Matrix() if len(form.rows) == 1:
            return form.rows[0]
        case Matrix() if form.rows and all(len(row) == 1 for row in form.rows):
            return tuple(row[0] for row in form.rows)
    return None


def same_number(gold: Number, answer: Number) -> bool:
    if {gold.unit, answer.unit} == {"dollar", "cent"}:
        return gold.value == answer.value * (Fraction(1, 100) if answer.unit == "cent" else 100)
    if gold.unit == PERCENT and not answer.unit:
        return answer.value == gold.value / 100 or (answer.value == gold.value >= 1 and not gold.is_fraction)
    if answer.unit == PERCENT and not gold.unit:
        return gold.value == answer.value / 100 and (abs(gold.value) <= 1 or gold.value.denominator > 1)
    if answer.unit == DEGREE and not gold.unit and gold.is_fraction:
        return False
    return compatible(gold.unit, answer.unit) and gold.value == answer.value


def adds_percent(gold: Form, answer: Form) -> bool:
    """Whether an answer is a gold number above 1, or below -1, with a percent sign, which its question may have had."""
    match gold, answer:
        case Number(unit="", is_fraction=False), Number(is_fraction=False, unit="percent"):
            return gold.value == answer.value and abs(gold.value) > 1
    return False


def compatible(gold_unit: str, answer_unit: str) -> bool:
    for unit, other in ((gold_unit, answer_unit), (answer_unit, gold_unit)):
        if unit.startswith("|unit") and other and not (other.endswith(unit[5:]) and other.split("^")[0] in LENGTHS):
            return False
    parts = zip(gold_unit.split("|"), answer_unit.split("|"), strict=False)
    return all(ours == theirs or not ours or not theirs for ours, theirs in parts)


def same_measure(gold: Expression, answer: Expression | Number) -> bool:
    r"""Whether the units agree. π, roots and functions are not meant in degrees without the sign, 90 − x may be."""
    in_degrees = not _NO_DEGREES.search(gold.latex) and (gold.unit or _RIGHT_ANGLES.search(gold.latex))
    if {gold.unit, answer.unit} == {DEGREE, ""} and not in_degrees:
        return False
    return compatible(gold.unit, answer.unit)


def same_ratio(gold: str, answer: str) -> bool:
    """Whether both are ratios ``2:3`` of the same value; what may be a time of day, ``3:30``, is not reduced."""
    if not re.fullmatch(r"\d+(:\d+)+", gold) or not re.fullmatch(r"\d+(:\d+)+", answer):
        return False
    terms, other = ([int(term) for term in ratio.split(":")] for ratio in (gold, answer))
    if re.fullmatch(r"\d{1,2}(?::[0-5]\d){1,2}", gold) or len(terms) != len(other) or not all(terms + other):
        return terms == other and len(gold) == len(answer)
    return all(term * other[0] == match * terms[0] for term, match in zip(terms, other, strict=True))


def _as_simple(gold: str, answer: str) -> bool:
    """Whether ``answer`` is an expression of the gold's kind, both in LaTeX of one spelling."""
    if "e ^" in gold or "e^" in gold:
        answer = _POLAR.sub(r"e^{i\g<angle>}", answer)
    most = max((2.5 if _is_factored(answer) else 1.5) * _size(gold), _size(gold) + 3)
    if not re.search(_VARIABLE, gold) and (
        _repeated(answer) > _repeated(gold) or (_ARITHMETIC.search(answer) and not _ARITHMETIC.search(gold))
    ):
        return False  # 2 \cdot 3 \pi, and \pi + \pi
    if re.search(_VARIABLE, gold) and _is_total(gold) and not _is_total(answer) and "!" not in answer:
        return False
    if "\\log_{10}" in answer and "\\log_" not in gold and re.search(_VARIABLE, gold):
        return False
    if "!" in gold or "\\binom" in gold:  # one is written with the other
        answer = answer.replace("!", "").replace("\\binom", "")
    if _size(_NUMERIC_FRACTION.sub("1", answer)) > most:
        return False
    ours, theirs = (set(re.findall(r"\\([a-zA-Z]+)", _INVERSE.sub(r"\\arc\1", latex))) for latex in (gold, answer))
    if adds_a_root(gold, answer) or any(kind & theirs and not kind & ours for kind in _KINDS):
        return False
    if not _is_worked_out(gold, answer):
        return False
    return not (_has_undrawn_root(answer) and not _has_undrawn_root(gold))


def adds_a_root(gold: str, answer: str) -> bool:
    """Whether an answer has a root, a logarithm or a broken power, and its gold, which holds letters, none."""
    return bool(_ROOT.search(answer) and not _ROOT.search(gold) and re.search(_VARIABLE, _GREEK.sub("x", gold)))


def _is_worked_out(gold: str, answer: str) -> bool:
    """Whether ``answer`` has as many factors, or fractions in a sum, as ``gold``, where these were asked for."""
    if (_is_factored(gold) and gold.count("(") > 1) or _SQUARED.search(gold):
        return min(answer.count("(") - gold.count("("), len(_SUM.findall(answer)) - len(_SUM.findall(gold))) >= 0
    if _SIZE.fullmatch(gold):
        return gold.replace(" ", "") == answer.replace(" ", "")
    if _PRIME_POWERS.fullmatch(gold):
        ours, theirs = re.findall(r"\d+", gold), re.findall(r"\d+", answer)
        return sorted(ours) == sorted(theirs)
    if len(_PARTIAL.findall(gold)) > 1 and _PARTIAL_OF_SUM.search(gold):
        return len(_PARTIAL.findall(answer)) == len(_PARTIAL.findall(gold))
    return True


def _repeated(latex: str) -> int:
    """How often π or a root stands in a text again."""
    found = _IRRATIONAL.findall(latex)
    return len(found) - len(set(found))


def _is_total(latex: str) -> bool:
    """Whether a text has a value whatever its letters are: no letter is divided by, or under a root or a logarithm."""
    spelled = _GREEK.sub("x", _INVERSE.sub(r"\\arc\1", latex))
    return _PARTIAL_FUNCTION.search(spelled) is None


def _is_factored(latex: str) -> bool:
    """Whether it is a product of brackets with polynomials in them."""
    outside = _BRACKET.sub("", latex)
    return "(" in latex and _POLYNOMIAL.fullmatch(latex) is not None and not re.search(r"[(+-]", outside.lstrip("- "))


def _size(latex: str) -> int:
    """The number of numbers, letters, functions and operations that ``latex`` is written with."""
    return sum(token not in _NO_WEIGHT for token in _TOKEN.findall(latex))


def _has_undrawn_root(latex: str) -> bool:
    """Whether a square root of an integer holds a square above 1, or a root stands directly under another."""
    return _ROOT_OF_ROOT.search(latex) is not None or any(
        int(radicand) % (factor * factor) == 0
        for radicand in _ROOT_OF_INTEGER.findall(latex)
        for factor in range(2, isqrt(min(int(radicand), 10**6)) + 1)
    )


def as_equation(form: Form) -> Relation | None:
    """The equation or inequality that a form is, if it is one with mathematics on both sides."""
    match form:
        case Relation():
            return form
        case Named(name=name) if "\\circ" in name:
            return None
        case Named(value=Expression() as value):
            return Relation("=", form.name, value.latex)
        case Named(value=Number() as value):
            return Relation("=", form.name, str(value.value))
        case Named(value=Interval(left=Expression() as left, right=Words("infinity"), left_closed=closed)):
            return Relation("\\le" if closed else "<", left.latex, form.name)
        case Named(value=Interval(left=Words("-infinity"), right=Expression() as right, right_closed=closed)):
            return Relation("\\le" if closed else "<", form.name, right.latex)
    return None


def _as_congruence(form: Form, name: str = "") -> Named | None:
    """``x = 7k + 3``, of any integer k, as the congruence of x."""
    match form:
        case Congruence():
            return Named(name, form)
        case Named():
            return _as_congruence(form.value, form.name)
        case Quantified(domain="Z" | ""):
            return _as_congruence(form.value, name)
        case Expression(unit=""):
            match = _MULTIPLE.fullmatch(form.latex.strip())
            if match and match["letter"] not in name and 2 <= (modulus := int(match["modulus"])) < 10**9:
                residue = int(match["first"] or 0) + int((match["last"] or "0").replace(" ", ""))
                return Named(name, Congruence((residue % modulus,), modulus))
    return None

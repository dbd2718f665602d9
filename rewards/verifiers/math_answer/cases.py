r"""Functions by cases: ``\begin{cases} x & x \ge 0 \\ -x & x < 0 \end{cases}``, and "x if x ≥ 0, −x otherwise"."""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise

from rewards.verifiers.math_answer.forms import Case, Cases, Form, Interval, Named, Number, Union, Unreadable, Words
from rewards.verifiers.math_answer.names import is_name, squeezed
from rewards.verifiers.math_answer.notation import split_outside_brackets

OTHERWISE = Words("otherwise")
_CASES = re.compile(
    r"(?:(?P<name>[^=]*?) ?= ?)?(?:\\begin ?\{[dr]?cases\}(?P<body>.*)\\end ?\{[dr]?cases\}"
    r"|\\\{ ?\\begin ?\{(?:array|matrix|aligned|alignedat|align)\} ?(?:\{[lcr| ]*\})?(?P<rows>.*)\\end ?\{\w+\})",
    re.DOTALL,
)
_IF = r"(?:\\text ?\{[ ,]*(?:if|for|when|where|on)(?: all)? *\}|(?<![a-zA-Z\\])(?:if|for|when)(?![a-zA-Z]))"
_INLINE = re.compile(rf"(?P<value>.*?\S)[ ,]*{_IF} *(?P<condition>.*\S)")
_OTHERWISE = re.compile(
    r"(?:\\text ?\{)?[ ,]*(?:if |for )?(?:otherwise|else|elsewhere|all other x)[ .,]*\}?", re.IGNORECASE
)
_ENDS_OTHERWISE = re.compile(rf"(?P<value>.*?\S)[ ,]*(?P<condition>{_OTHERWISE.pattern})", re.IGNORECASE)


def cases(text: str, form: Callable[[str], Form]) -> Form | None:
    """A function by cases, with ``form`` reading values and conditions."""
    match = _CASES.fullmatch(text)
    if match is None:
        return _inline(text, form)
    if match["name"] and not (is_name(match["name"]) or re.fullmatch(r"\| ?[a-z] ?\|", match["name"])):
        return None
    rows = [row.strip() for row in re.split(r"\\\\(?:\[[^\]]*\])?", match["body"] or match["rows"]) if row.strip()]
    if not match["name"] and not any("&" in row or "\\text" in row for row in rows):  # x = 1, y = 2
        return form(", ".join(rows))
    pieces = [_row(row, form) for row in rows]
    known = tuple(piece for piece in pieces if piece is not None)
    if len(known) < max(len(pieces), 2):
        return Unreadable("it is by cases without a condition for each")
    return Named(squeezed(match["name"]), Cases(known)) if match["name"] else Cases(known)


def same_cases(gold: Cases, answer: Cases, same: Callable[[Form, Form], bool | None]) -> bool | None:
    """Whether each case of one has its case in the other, in any order; "otherwise" is what the others leave."""
    if len(gold.pieces) != len(answer.pieces):
        return False
    left, known = list(answer.pieces), True
    conditions = [[piece.condition for piece in each.pieces] for each in (gold, answer)]
    for piece in gold.pieces:
        verdicts = []
        for other in left:
            condition = _same_condition(piece.condition, other.condition, conditions, same)
            verdicts.append(condition and same(piece.value, other.value))
        if True in verdicts:
            del left[verdicts.index(True)]
        elif None in verdicts:
            known = False
        else:
            return False
    return True if known else None


def _same_condition(
    one: Form, other: Form, conditions: list[list[Form]], same: Callable[[Form, Form], bool | None]
) -> bool | None:
    if (one == OTHERWISE) == (other == OTHERWISE):
        return one == other or same(one, other)
    explicit, rest = (other, conditions[1]) if one == OTHERWISE else (one, conditions[0])
    return _is_what_is_left(explicit, [condition for condition in rest if condition is not explicit])


def _row(row: str, form: Callable[[str], Form]) -> Case | None:
    value, ampersand, condition = row.partition("&")
    if not ampersand:
        match = _INLINE.fullmatch(row) or _ENDS_OTHERWISE.fullmatch(row)
        if match is None:
            return None
        value, condition = match["value"], match["condition"]
    return Case(form(value.strip(" ,")), _condition(condition.replace("&", " "), form))


def _inline(text: str, form: Callable[[str], Form]) -> Form | None:
    name, equals, rest = text.partition("=")
    if not equals or not is_name(name):
        name, rest = "", text
    pieces = [piece.strip() for piece in split_outside_brackets(rest, re.compile(r"[,;]")) if piece.strip()]
    if len(pieces) < 2 or not all(_INLINE.fullmatch(piece) or _ENDS_OTHERWISE.fullmatch(piece) for piece in pieces):
        return None
    known = tuple(case for piece in pieces if (case := _row(piece, form)))
    return Named(squeezed(name), Cases(known)) if name else Cases(known)


def _condition(text: str, form: Callable[[str], Form]) -> Form:
    text = re.sub(rf"^[ ,]*{_IF}", "", text.strip(" ,.;")).strip()
    if _OTHERWISE.fullmatch(text):
        return OTHERWISE
    condition = form(text)
    if isinstance(condition, Unreadable):  # n is even
        return Words(re.sub(r"\\text|\b(?:is|if|an?)\b|[{}\s,.]", "", text))
    return condition


def _is_what_is_left(condition: Form, others: Iterable[Form]) -> bool:
    """Whether ``condition`` holds of one unknown's values exactly where none of ``others`` does."""
    sets = [condition, *others]
    if len({each.name for each in sets if isinstance(each, Named)}) != 1:
        return False
    values = [each.value if isinstance(each, Named) else each for each in sets]
    ends = sorted({end for value in values for end in _ends(value)})
    if not ends:
        return False
    between = [(one + other) / 2 for one, other in pairwise(ends)]
    for place in (*ends, *between, ends[0] - 1, ends[-1] + 1):
        held = [_holds(value, place) for value in values]
        if None in held or held[0] is any(held[1:]):
            return False
    return True


def _ends(value: Form) -> list[Fraction]:
    match value:
        case Number():
            return [value.value]
        case Interval():
            return [end.value for end in (value.left, value.right) if isinstance(end, Number)]
        case Union():
            return [end for piece in value.pieces for end in _ends(piece)]
    return []


def _holds(value: Form, place: Fraction) -> bool | None:
    match value:
        case Number():
            return value.value == place
        case Union():
            held = [_holds(piece, place) for piece in value.pieces]
            return None if None in held else any(held)
        case Interval(left=Number() | Words() as left, right=Number() | Words() as right):
            above = (
                left.text == "-infinity"
                if isinstance(left, Words)
                else (left.value < place or (value.left_closed and left.value == place))
            )
            below = (
                right.text == "infinity"
                if isinstance(right, Words)
                else (place < right.value or (value.right_closed and right.value == place))
            )
            return above and below
    return None

"""Several answers, sets, intervals, points: what commas, braces, brackets, ∪ and ± hold together."""

import re
from collections.abc import Callable
from itertools import pairwise

from rewards.verifiers.math_answer.forms import (
    Congruence,
    Form,
    Interval,
    Listing,
    Named,
    Number,
    Row,
    Union,
    Unreadable,
    Words,
)
from rewards.verifiers.math_answer.notation import matching_end, split_outside_brackets
from rewards.verifiers.math_answer.words import words_in

INFINITY, MINUS_INFINITY = Words("infinity"), Words("-infinity")
EMPTY_SET = Listing((), braces=True)
REALS = Interval(MINUS_INFINITY, INFINITY, left_closed=False, right_closed=False)

COMMA = re.compile(r"[,;]")
_CONJUNCTION = re.compile(r"\\text ?\{ *(?:and|or) *\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])")
SEPARATOR = re.compile(rf"{COMMA.pattern}|{_CONJUNCTION.pattern}")
_GROUP = re.compile(r";|\\text ?\{ *or *\}|(?<![a-zA-Z\\])or(?![a-zA-Z])")
_EITHER = re.compile(r"\\(?:pm|mp)(?![a-zA-Z])")
_EITHER_LISTED = re.compile(r"\\\{[^{}]*\\(?:pm|mp)")
_CUP = re.compile(r"\\cup(?![a-zA-Z])")
_SUCH_THAT = re.compile(r" ?\\?[a-z]+ ?(?:\\in ?\\mathbb ?\{?R\}? ?)?[:|]")
_REALS_WITHOUT = re.compile(r"\\mathbb ?\{?R\}? ?(?:\\setminus|\\backslash|-) ?\\\{([^{}]*)\\\}")
_HALF_OF_REALS = re.compile(r"\\mathbb ?\{?R\}? ?[_^] ?\{? ?([+-]) ?\}?")


def several(text: str, form: Callable[[str], Form]) -> Form | None:
    """What commas, "and" and "or" separate."""
    pieces = split_outside_brackets(text, SEPARATOR)
    if len(pieces) == 1:
        return None
    if groups := _groups_of_names(text, form):
        return groups
    if re.search(r"\\mp(?![a-zA-Z])", text) and all("=" in piece for piece in pieces):  # x = ±1, y = ∓2
        return either_sign(text, form)
    forms = [form(piece) for piece in pieces if piece.strip()]
    values = [item.value if isinstance(item, Named) else item for item in forms]
    if merged := _one_congruence(forms):
        return merged
    if all(isinstance(value, Interval) for value in values):
        if conjunction := _CONJUNCTION.search(text):
            return Union(tuple(values)) if "or" in conjunction[0] else _overlap(values)
        if all(isinstance(item, Named) for item in forms) and _apart(values):  # x < 0, x > 1 cannot mean both
            return Union(tuple(values))
    return listing(forms)


def _groups_of_names(text: str, form: Callable[[str], Form]) -> Listing | None:
    """``p=5, q=2; p=7, q=2``: several solutions, each a value for each name."""
    groups = [group.strip() for group in split_outside_brackets(text, _GROUP) if group.strip()]
    if len(groups) < 2 or not all("," in group and "=" in group for group in groups):
        return None
    solutions = [form(group) for group in groups]
    named = [len(names_of(solution)) == len(solution.items) for solution in solutions if isinstance(solution, Listing)]
    return Listing(tuple(solutions)) if len(named) == len(groups) and all(named) else None


def _one_congruence(forms: list[Form]) -> Form | None:
    """``x ≡ 1 or x ≡ 2 (mod 3)``, of one unknown and modulus."""
    moduli = {
        (form.name, form.value.modulus)
        for form in forms
        if isinstance(form, Named) and isinstance(form.value, Congruence)
    }
    found = [form.value for form in forms if isinstance(form, Named) and isinstance(form.value, Congruence)]
    if len(moduli) != 1 or len(found) < len(forms):
        return None
    ((name, modulus),) = moduli
    return Named(name, Congruence(tuple(residue for each in found for residue in each.residues), modulus))


def names_of(listing: Listing) -> set[str]:
    """The names in a list of values under names."""
    return {item.name for item in listing.items if isinstance(item, Named)}


def _overlap(halves: list[Form]) -> Form:
    """``x > 2 and x < 3``, as an interval."""
    match halves:
        case [Interval(right=Words("infinity")) as above, Interval(left=Words("-infinity")) as below] | [
            Interval(left=Words("-infinity")) as below,
            Interval(right=Words("infinity")) as above,
        ]:
            return Interval(above.left, below.right, above.left_closed, below.right_closed)
    return Unreadable("these inequalities are not two ends of an interval")


def _apart(intervals: list[Form]) -> bool:
    """Whether two half-lines have plain numbers as ends and no point in common."""
    match _overlap(intervals):
        case Interval(left=Number() as left, right=Number() as right):
            return left.value > right.value
    return False


def listing(forms: list[Form], *, braces: bool = False) -> Listing:
    """What ± adds to a list is listed with the rest."""
    flat: list[Form] = []
    for item in forms:
        if isinstance(item, Listing) and not item.braces:
            flat.extend(item.items)
        elif isinstance(item, Named) and isinstance(item.value, Listing) and not item.value.braces:
            flat.extend(Named(item.name, value) for value in item.value.items)
        else:
            flat.append(item)
    return Listing(tuple(dict.fromkeys(flat)) if braces else tuple(flat), braces)


def constant(text: str, form: Callable[[str], Form]) -> Form | None:
    """∅, ℝ, ℝ⁺, ∞."""
    if text in ("\\emptyset", "\\{\\}", "\\{ \\}"):
        return EMPTY_SET
    if text in ("\\mathbb{R}", "\\mathbb R"):
        return REALS
    if half := _HALF_OF_REALS.fullmatch(text):
        left, right = (form("0"), INFINITY) if half[1] == "+" else (MINUS_INFINITY, form("0"))
        return Interval(left, right, left_closed=False, right_closed=False)
    unsigned = text.lstrip("+-").strip()
    if unsigned == "\\infty" or words_in(unsigned) == "infinity":
        return MINUS_INFINITY if text.startswith("-") else INFINITY
    return None


def in_braces(text: str, form: Callable[[str], Form]) -> Form | None:
    """A set in braces, by its elements or by a condition, or ℝ without some."""
    if not text.endswith("\\}"):
        return None
    if text.startswith("\\{") and matching_end(text, 1) == len(text):
        condition = _SUCH_THAT.match(text[2:-2])
        if condition:
            return form(text[2:-2][condition.end() :])
        return listing([form(piece) for piece in split_outside_brackets(text[2:-2], COMMA)], braces=True)
    excluded = _REALS_WITHOUT.fullmatch(text)
    return None if excluded is None else reals_without([form(piece) for piece in excluded[1].split(",")])


def reals_without(points: list[Form]) -> Form:
    """ℝ less some plain numbers, as a union of intervals."""
    numbers = [point for point in points if isinstance(point, Number)]
    if len(numbers) < len(points):
        return Unreadable("it excludes what is no plain number")
    ends: list[Form] = [MINUS_INFINITY, *sorted(numbers, key=lambda number: number.value), INFINITY]
    return Union(tuple(Interval(left, right, False, False) for left, right in pairwise(ends)))


def in_brackets(text: str, form: Callable[[str], Form]) -> Form | None:
    """A point or an interval; ``(\\pm 1, \\mp 2)`` and ``\\pm(1, -2)`` are two points."""
    if text[0] == "(" and _EITHER.search(text) and not _EITHER_LISTED.search(text):
        return either_sign(text, form) if matching_end(text, 0) == len(text) and "," in text else None
    if text[0] in "+-" and (rest := text[1:].strip()).startswith("(") and matching_end(rest, 0) == len(rest):
        pieces = split_outside_brackets(rest[1:-1], COMMA)
        return Row(tuple(form(f"{text[0]}({piece})".lstrip("+")) for piece in pieces)) if len(pieces) > 1 else None
    if text[0] not in "([" or matching_end(text, 0) != len(text):
        return None
    items = tuple(form(piece) for piece in split_outside_brackets(text[1:-1], COMMA))
    if len(items) == 1:
        return None
    square = (text[0] == "[", text[-1] == "]")
    if len(items) == 2 and (any(square) or {INFINITY, MINUS_INFINITY} & set(items)):
        return Interval(*items, *square)
    if square[0] != square[1]:
        return Unreadable("its brackets are unlike")
    return Row(items)


def union(text: str, form: Callable[[str], Form]) -> Form | None:
    """What ∪ unites."""
    pieces = split_outside_brackets(text, _CUP)
    return None if len(pieces) == 1 else Union(tuple(form(piece) for piece in pieces))


def either_sign(text: str, form: Callable[[str], Form]) -> Form | None:
    """The two values that ± means."""
    if not _EITHER.search(text):
        return None
    upper = re.sub(r"\\pm(?![a-zA-Z]) ?", "+", re.sub(r"\\mp(?![a-zA-Z]) ?", "-", text))
    lower = re.sub(r"\\pm(?![a-zA-Z]) ?", "-", re.sub(r"\\mp(?![a-zA-Z]) ?", "+", text))
    return Listing((form(upper), form(lower)))

"""What an answer can be: what `reading` makes of a text and `comparison` compares."""

import re
from dataclasses import dataclass, field, is_dataclass
from fractions import Fraction
from typing import TypeAlias


@dataclass(frozen=True)
class Number:
    """A plain number, exactly, the name of its unit where it has one, and whether it is written as a fraction."""

    value: Fraction
    unit: str = ""
    is_fraction: bool = False

    @property
    def latex(self) -> str:
        """Its exact value, as a fraction; of 50 percent a half."""
        value = self.value / 100 if self.unit == "percent" else self.value
        return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


@dataclass(frozen=True)
class Expression:
    """What only a computer algebra system can compare, in LaTeX, and the name of its unit."""

    latex: str
    unit: str = ""


@dataclass(frozen=True)
class Words:
    """Words, the letter of a choice, a time of day, digits with their base, ∞: equal when they are spelled alike."""

    text: str


@dataclass(frozen=True)
class Named:
    """A value under a name: ``x = 5``, ``f(x) = x^2``, ``x ∈ [0, 1]``."""

    name: str
    value: "Form"


@dataclass(frozen=True)
class About:
    """A number that something is about: ``\\approx 3.14``."""

    value: Number


@dataclass(frozen=True)
class Worked:
    """A result, what it was computed from and what it is about: ``2 \\cdot 3 = 6``, ``\\sqrt2 \\approx 1.41``."""

    steps: tuple["Form", ...]
    result: "Form"
    about: About | None = None


@dataclass(frozen=True)
class Quantified:
    """A value for all of a letter: ``3k, k \\in \\mathbb{Z}``; ``domain`` is Z, N, Q, R, C or nothing, after "some "
    where it is for one of them; ``text`` is that of the value."""

    value: "Form"
    domain: str
    letter: str
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Relation:
    """Two sides and what stands between them: ``=``, ``<``, ``\\le`` or ``\\ne``; > and ≥ are turned round.

    ``answer`` is what an equation says of a value, if that is what was asked for: 5 of ``x+y=5``.
    """

    sign: str
    left: str
    right: str
    answer: "Form | None" = None

    @property
    def is_between_numbers(self) -> bool:
        """Whether no letter but e and i stands on either side."""
        return re.search(r"[a-df-hj-zA-Z]", re.sub(r"\\[a-zA-Z]+", "", self.left + self.right)) is None


@dataclass(frozen=True)
class Listing:
    """Several answers in any order: separated by commas or words, in braces as a set, or meant by ±.

    ``alternatives``: values of different unknowns, or conditions, of which one holds: ``x = 5 or y = 8`` is no point.
    """

    items: tuple["Form", ...]
    braces: bool = False
    alternatives: bool = False
    joined: str = field(default="", compare=False)

    @property
    def names(self) -> set[str]:
        """The names of those values that have one."""
        return {item.name for item in self.items if isinstance(item, Named)}


@dataclass(frozen=True)
class Row:
    """Values in order: a point, or a vector where it stands in angles."""

    items: tuple["Form", ...]
    is_vector: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Matrix:
    """Rows of entries."""

    rows: tuple[tuple["Form", ...], ...]


@dataclass(frozen=True)
class Interval:
    """An interval of the real line; ``is_pair`` where it is written as a pair, which a point is too: x ∈ (1, 2)."""

    left: "Form"
    right: "Form"
    left_closed: bool
    right_closed: bool
    is_pair: bool = field(default=False, compare=False)

    @property
    def ends(self) -> tuple["Form", "Form"]:
        """Left and right."""
        return self.left, self.right


@dataclass(frozen=True)
class Union:
    """Intervals or sets united, or, where ``sign`` is ``\\cap``, what they have in common; in any order."""

    pieces: tuple["Form", ...]
    sign: str = "\\cup"


@dataclass(frozen=True)
class Congruence:
    """Integers of these residues: ``1, 3 \\pmod{8}``."""

    residues: tuple[int, ...]
    modulus: int


@dataclass(frozen=True, eq=False)  # two texts are not equal because neither is readable
class Unreadable:
    """None of the others; right only as the very same text."""

    reason: str


@dataclass(frozen=True)
class Answer:
    """One reading of an answer: its text in one spelling, its form, and its exact value where it is a bare number."""

    text: str
    value: Fraction | None
    form: "Form"


def unreadable_part(form: object) -> str:
    """Why a form, or a part of it, could not be read; empty where all was."""
    if isinstance(form, Unreadable):
        return form.reason
    parts = form if isinstance(form, tuple) else vars(form).values() if is_dataclass(form) else ()
    return next((reason for part in parts if (reason := unreadable_part(part))), "")


def units_in(form: object) -> set[str]:
    """The units of all values of a form."""
    parts = form if isinstance(form, tuple) else vars(form).values() if is_dataclass(form) else ()
    return {form.unit} - {""} if isinstance(form, Number | Expression) else set().union(*map(units_in, parts))


_Value: TypeAlias = Number | About | Worked | Quantified | Expression | Words | Named | Relation
_Several: TypeAlias = Listing | Row | Matrix | Interval | Union | Congruence
Form: TypeAlias = _Value | _Several | Unreadable

INFINITY, MINUS_INFINITY = Words("infinity"), Words("-infinity")
EMPTY_SET = Listing((), braces=True)
REALS = Interval(MINUS_INFINITY, INFINITY, left_closed=False, right_closed=False)

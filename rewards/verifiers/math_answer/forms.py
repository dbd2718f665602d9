"""What an answer can be: the forms that `reading` makes and `comparison` compares."""

from dataclasses import dataclass
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
        """Its exact value, as a fraction."""
        return f"\\frac{{{self.value.numerator}}}{{{self.value.denominator}}}"


@dataclass(frozen=True)
class Expression:
    """What only a computer algebra system can compare, in LaTeX, and the name of its unit."""

    latex: str
    unit: str = ""


@dataclass(frozen=True)
class Words:
    """Words, the letter of a choice, a time of day, ∞: equal when they are the same, in one spelling."""

    text: str


@dataclass(frozen=True)
class BasedNumber:
    """Digits with the base that they are written in."""

    digits: str
    base: str


@dataclass(frozen=True)
class Named:
    """A value under a name: ``x = 5``, ``f(x) = x^2``, ``x ∈ [0, 1]``."""

    name: str
    value: "Form"


@dataclass(frozen=True)
class Relation:
    """Two sides and what stands between them: ``=``, ``<``, ``\\le`` or ``\\ne``; > and ≥ are turned round."""

    sign: str
    left: str
    right: str


@dataclass(frozen=True)
class Listing:
    """Several answers in any order: separated by commas or words, in braces as a set, or meant by ±."""

    items: tuple["Form", ...]
    braces: bool = False


@dataclass(frozen=True)
class Row:
    """Values in order: a point, a vector."""

    items: tuple["Form", ...]


@dataclass(frozen=True)
class Matrix:
    """Rows of entries."""

    rows: tuple[tuple["Form", ...], ...]


@dataclass(frozen=True)
class Interval:
    """An interval of the real line."""

    left: "Form"
    right: "Form"
    left_closed: bool
    right_closed: bool


@dataclass(frozen=True)
class Union:
    """Intervals or sets united, in any order."""

    pieces: tuple["Form", ...]


@dataclass(frozen=True)
class Unreadable:
    """None of the others; right only as the very same text."""

    reason: str


Form: TypeAlias = (
    Number
    | Expression
    | Words
    | BasedNumber
    | Named
    | Relation
    | Listing
    | Row
    | Matrix
    | Interval
    | Union
    | Unreadable
)

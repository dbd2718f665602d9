"""The statement language of knights-and-knaves puzzles: parse, evaluate, solve.

Every inhabitant is a knight, whose claims are all true, or a knave, whose claims are all false, and makes one claim.
A claim is a nested tuple over people numbered from 0, as in the ``statements`` column of the published rows
(arXiv 2410.23123; Logic-RL, arXiv 2502.14768)::

    ('telling-truth', i)   person i is a knight          ('and', s, s, …)   all hold
    ('lying', i)           person i is a knave           ('or', s, s, …)    at least one holds
    ('not', s)             s does not hold               ('->', s, s)       if the first holds, so does the second
                                                         ('<=>', s, s)      both hold or neither does

An *assignment* is one bool per person, True = knight. It solves the puzzle when, for every person p,
assignment[p] == (claim of p is true).
"""

import ast
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

Statement = tuple[Any, ...]
Style = Literal["published", "compact"]

LEAVES = ("telling-truth", "lying")
COMMUTATIVE = ("and", "or", "<=>")

MAX_PEOPLE = 16
MAX_DEPTH = 16
MAX_CHARACTERS = 20_000


@dataclass(frozen=True)
class Puzzle:
    """One puzzle with its text and its only solution.

    Attributes:
        names: the inhabitants, in the order in which ``statements`` numbers them.
        statements: the claim of each inhabitant.
        solution: True where the inhabitant is a knight.
        quiz: the question, in English.
    """

    names: tuple[str, ...]
    statements: tuple[Statement, ...]
    solution: tuple[bool, ...]
    quiz: str


def parse_statements(text: str) -> tuple[Statement, ...]:
    """The claims written in ``text``, a Python literal as in the published ``statements`` column.

    Raises:
        ValueError: ``text`` is too long, not a literal, or not in the statement language.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"statements of {len(text)} characters: at most {MAX_CHARACTERS} are read")
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise ValueError(f"statements {text[:80]!r} are no Python literal") from None
    return checked_statements(value)


def checked_statements(value: Any) -> tuple[Statement, ...]:
    """``value`` as statements: lists become tuples, and everything outside the language is refused.

    Raises:
        ValueError: not a sequence of 1 to 16 claims, or a claim is not in the language or nested deeper than 16.
    """
    if not isinstance(value, tuple | list) or not 1 <= len(value) <= MAX_PEOPLE:
        raise ValueError(f"statements {reprlib.repr(value)} are not a sequence of 1 to {MAX_PEOPLE} claims")
    return tuple(_checked(statement, len(value), MAX_DEPTH) for statement in value)


def _checked(statement: Any, num_people: int, depth_left: int) -> Statement:
    match statement:
        case [("telling-truth" | "lying") as word, person] if type(person) is int and 0 <= person < num_people:
            return (word, person)
        case ["not", _] | ["and" | "or", _, _, *_] | ["->" | "<=>", _, _] if depth_left:
            word, *claims = statement
            return (word, *(_checked(each, num_people, depth_left - 1) for each in claims))
    raise ValueError(f"{reprlib.repr(statement)} is not a claim about {num_people} people")


def evaluate(statement: Statement, assignment: Sequence[bool]) -> bool:
    """True if ``statement`` holds under ``assignment``."""
    place = sum(bool(knight) << person for person, knight in enumerate(assignment))
    return bool(truth_table(statement, len(assignment)) >> place & 1)


def truth_table(statement: Statement, num_people: int) -> int:
    """The assignments that make ``statement`` true, as a set of bits.

    Bit k stands for the assignment in which person i is a knight exactly where bit i of k is set; an integer of
    2**num_people bits holds them all, so a connective takes one operation for all assignments together.
    """
    everything = (1 << (1 << num_people)) - 1
    word, *arguments = statement
    if word in LEAVES:
        knight = _knight_bits(arguments[0], num_people)
        return knight if word == "telling-truth" else everything ^ knight
    tables = [truth_table(argument, num_people) for argument in arguments]
    if word == "not":
        return everything ^ tables[0]
    if word == "and":
        return reduce(int.__and__, tables)
    if word == "or":
        return reduce(int.__or__, tables)
    if word == "->":
        return (everything ^ tables[0]) | tables[1]
    return everything ^ tables[0] ^ tables[1]


def _knight_bits(person: int, num_people: int) -> int:
    # Bit `person` of 0, 1, 2, …: 2**person zeros, then as many ones, repeated. In closed form
    # (2**(2**n) − 1) / (2**(2**person) + 1), shifted up by 2**person so that the zeros come first.
    block = 1 << person
    return int(((1 << (1 << num_people)) - 1) // ((1 << block) + 1)) << block


def solutions(statements: Sequence[Statement]) -> list[tuple[bool, ...]]:
    """Every assignment that solves the puzzle, by truth tables of all 2**people."""
    people = len(statements)
    solved = everything = (1 << (1 << people)) - 1
    for person, statement in enumerate(statements):
        solved &= everything ^ _knight_bits(person, people) ^ truth_table(statement, people)
    return [tuple(bool(k >> i & 1) for i in range(people)) for k in _set_bits(solved)]


def _set_bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def people_in(statement: Statement) -> frozenset[int]:
    """The people whom ``statement`` mentions."""
    if statement[0] in LEAVES:
        return frozenset(statement[1:])
    return frozenset[int]().union(*(people_in(argument) for argument in statement[1:]))

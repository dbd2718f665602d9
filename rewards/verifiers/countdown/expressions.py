"""Arithmetic as countdown writes it: a parser of our own, because ``eval`` runs what a policy invents.

Grammar, over non-negative integer literals::

    sum     = product { (+ | - | −) product }
    product = atom    { (* | × | / | ÷) atom }
    atom    = integer | ( sum )

There is no sign, no power, no floor division, no decimal point and no implied multiplication: none of them is one of
the task's four operations, and each has been used to reach a target that the four operations do not reach.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

LONGEST_EXPRESSION = 512  # characters; ten numbers of ten digits with every bracket fit in a quarter of it
DEEPEST_NESTING = 32  # brackets; each level costs a few Python frames

_TOKEN = re.compile(r"\s*(?:(?P<integer>0|[1-9][0-9]*)(?![0-9])|(?P<symbol>[-+*/()]))")
_SPELLINGS = str.maketrans({"−": "-", "×": "*", "÷": "/"})


class MalformedExpressionError(ValueError):
    """The text is no arithmetic expression of the countdown task; the message says where it stops being one."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression.

    Attributes:
        value: its exact value; ``None`` where it divides by zero.
        literals: the integers that it uses, in the order in which they are written, repetitions kept.
    """

    value: Fraction | None
    literals: tuple[int, ...]


def parse_expression(text: str) -> Expression:
    """The value and the literals of ``text``, exactly and in bounded time.

    Division by zero is a well-formed expression without a value. Raises ``MalformedExpressionError`` for everything
    that the grammar above does not produce, for more than 512 characters and for brackets nested more than 32 deep.
    """
    if len(text) > LONGEST_EXPRESSION:
        raise MalformedExpressionError(f"{len(text)} characters, more than the {LONGEST_EXPRESSION} that are read")
    reader = _Reader(_tokens(text.translate(_SPELLINGS).strip()))
    value = reader.sum(depth=0)
    if reader.next is not None:
        raise MalformedExpressionError(f"an operation is missing before {reader.next!r}")
    return Expression(value, tuple(reader.literals))


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise MalformedExpressionError(f"{text[position : position + 12].strip()!r} is not arithmetic")
        tokens.append(match["integer"] or match["symbol"])
        position = match.end()
    return tokens


class _Reader:
    """Recursive descent over the tokens. A division by zero makes every value above it ``None``."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0
        self.literals: list[int] = []

    @property
    def next(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def sum(self, depth: int) -> Fraction | None:
        value = self._product(depth)
        while self.next in ("+", "-"):
            value = _applied(self._take(), value, self._product(depth))
        return value

    def _product(self, depth: int) -> Fraction | None:
        value = self._atom(depth)
        while self.next in ("*", "/"):
            value = _applied(self._take(), value, self._atom(depth))
        return value

    def _atom(self, depth: int) -> Fraction | None:
        token = self._take()
        if token.isdecimal():
            self.literals.append(int(token))
            return Fraction(int(token))
        if token != "(":
            raise MalformedExpressionError(f"a number or a bracket should stand where {token!r} stands")
        if depth == DEEPEST_NESTING:
            raise MalformedExpressionError(f"brackets nested more than {DEEPEST_NESTING} deep")
        value = self.sum(depth + 1)
        if self.next != ")":
            raise MalformedExpressionError("a bracket is not closed")
        self._take()
        return value

    def _take(self) -> str:
        if self.next is None:
            raise MalformedExpressionError("it ends where a number should follow" if self._tokens else "it is empty")
        self._position += 1
        return self._tokens[self._position - 1]


def _applied(operation: str, left: Fraction | None, right: Fraction | None) -> Fraction | None:
    if left is None or right is None:
        return None
    if operation == "+":
        return left + right
    if operation == "-":
        return left - right
    if operation == "*":
        return left * right
    return left / right if right else None

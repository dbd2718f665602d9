"""Countdown: reach a target with given numbers and the four operations. Verifier, parser and solver.

The parser is our own, because ``eval`` runs what a policy invents.

Grammar, over non-negative integer literals::

    sum     = product { (+ | - | −) product }
    product = atom    { (* | × | / | ÷) atom }
    atom    = integer | ( sum )

There is no sign, no power, no floor division, no decimal point and no implied multiplication: none of them is one of
the task's four operations, and each has been used to reach a target that the four operations do not reach.
"""

import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from evenkeel.rewards.extraction import answer_block
from evenkeel.rewards.verifier import Verdict, Verifier


@dataclass(frozen=True)
class Countdown(Verifier):
    """Score 1 for an expression over the given numbers that equals the target, else 0.

    The reference is a mapping ``{"numbers": [79, 17, 60], "target": 36}``; other keys are ignored, NumPy arrays and
    integers are accepted. Anything else is unjudged. The answer is the one ``<answer>`` block that ends the
    completion after the last ``</think>``; a closing ``= 36`` is allowed there and must name the target.

    Options:
        use_all: every given number must be used. The published task says "each number can only be used once", which
            asks for at most once, and that is the default.
    """

    use_all: bool = False

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge the answer in ``completion``. Wrong, never unjudged, whatever the completion holds."""
        try:
            numbers, target = _problem(reference)
        except ValueError as error:
            return Verdict(None, None, str(error))
        block = answer_block(completion)
        if block.text is None:
            return Verdict(0.0, None, block.problem)
        fault = self._fault(block.text, numbers, target)
        return Verdict(0.0, block.text, fault) if fault else Verdict(self.full_score, block.text, f"equals {target}")

    def gold_completion(self, reference: Any) -> str | None:
        """A completion with a solution found by search; ``None`` for more than four numbers or no solution."""
        try:
            numbers, target = _problem(reference)
        except ValueError:
            return None
        found = solution(numbers, target, use_all=self.use_all)
        return None if found is None else f"<think> {found} = {target} </think> <answer> {found} </answer>"

    def unanswerable(self, reference: Any) -> str:
        """That no expression has the target; not searched for more than four numbers."""
        numbers, target = _problem(reference)
        if len(numbers) > LARGEST_SEARCH or solution(numbers, target, use_all=self.use_all) is not None:
            return ""
        used = "all of" if self.use_all else "some of"
        return f"no expression over {used} {list(numbers)} equals {target}"

    def _fault(self, answer: str, numbers: tuple[int, ...], target: int) -> str | None:
        """What is wrong with the answer, or ``None``."""
        text, equals, claim = answer.partition("=")
        if equals and claim.strip() != str(target):
            return f"'= {claim.strip()[:40]}' stands after the expression; the target is {target}"
        try:
            expression = parse_expression(text)
        except MalformedExpressionError as error:
            return f"not an expression: {error}"
        used, given = Counter(expression.literals), Counter(numbers)
        if excess := used - given:
            return f"uses {sorted(excess.elements())} beyond the given {sorted(numbers)}"
        if self.use_all and used != given:
            return f"leaves {sorted((given - used).elements())} unused"
        if expression.value is None:
            return "divides by zero"
        return None if expression.value == target else f"equals {expression.value}, not {target}"


def _problem(reference: Any) -> tuple[tuple[int, ...], int]:
    """Numbers and target of a reference. Raises ``ValueError`` where they cannot be judged against."""
    if not isinstance(reference, Mapping) or not {"numbers", "target"} <= reference.keys():
        raise ValueError(f"the reference is {reference!r:.80}; countdown needs {{'numbers': [...], 'target': ...}}")
    numbers, target = reference["numbers"], reference["target"]
    try:
        given = tuple(_integer(number) for number in numbers)
        wanted = _integer(target)
    except TypeError:
        given, wanted = (), 0
    if not given or min(given) < 0:
        raise ValueError(
            f"numbers {numbers!r:.80} and target {target!r:.40}; countdown needs one or more non-negative integers "
            "and an integer target"
        )
    return given, wanted


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("a truth value is not a number of the problem")
    return operator.index(value)


LONGEST_EXPRESSION = 512  # characters; ten numbers of ten digits with every bracket fit in a quarter of it
DEEPEST_NESTING = 32  # brackets; each level costs a few Python frames

_TOKEN = re.compile(r"\s*(?:(?P<integer>0|[1-9][0-9]*)(?![0-9])|(?P<symbol>[-+*/()]))")
_SPELLINGS = str.maketrans({"−": "-", "×": "*", "÷": "/"})


class MalformedExpressionError(ValueError):
    """The text is not an arithmetic expression of the countdown task; the message says where it stops being one."""


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


LARGEST_SEARCH = 4  # numbers; four cost milliseconds, five already seconds

_Term = tuple[Fraction, str]  # a value, and the expression that has it


def solution(numbers: Sequence[int], target: int, *, use_all: bool = False) -> str | None:
    """An expression over ``numbers``, each used at most once (exactly once with ``use_all``), equal to ``target``.

    Deterministic. ``None`` where no expression exists, and also where there are more than ``LARGEST_SEARCH`` numbers:
    the search is not started. Brackets stand around every inner operation, also where precedence needs none.
    """
    if len(numbers) > LARGEST_SEARCH:
        return None
    sizes = [len(numbers)] if use_all else range(1, len(numbers) + 1)
    for size in sizes:
        for chosen in combinations(numbers, size):
            for value, text in _reachable([(Fraction(number), str(number)) for number in chosen]):
                if value == target:
                    return text[1:-1] if text.startswith("(") else text
    return None


def _reachable(terms: list[_Term]) -> Iterator[_Term]:
    """What all of ``terms`` together can become: two of them are replaced by one until a single one is left."""
    if len(terms) == 1:
        yield terms[0]
        return
    for first, second in combinations(range(len(terms)), 2):
        rest = [term for index, term in enumerate(terms) if index not in (first, second)]
        for joined in _joined(terms[first], terms[second]):
            yield from _reachable([*rest, joined])


def _joined(left: _Term, right: _Term) -> Iterator[_Term]:
    (a, a_text), (b, b_text) = left, right
    yield a + b, f"({a_text} + {b_text})"
    yield a * b, f"({a_text} * {b_text})"
    yield a - b, f"({a_text} - {b_text})"
    yield b - a, f"({b_text} - {a_text})"
    if b:
        yield a / b, f"({a_text} / {b_text})"
    if a:
        yield b / a, f"({b_text} / {a_text})"

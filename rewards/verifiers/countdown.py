"""Countdown: reach a target with given numbers and the four operations. Verifier and solver.

An answer is parsed by Python's parser and never run. Only this part of the grammar is accepted, over whole numbers::

    sum     = product { (+ | - | −) product }
    product = atom    { (* | × | · | / | ÷) atom }
    atom    = integer | ( sum ) | [ sum ]

LaTeX may spell it: ``\\times``, ``\\cdot``, ``\\div``, ``\\frac{4}{2}``, sized brackets, dollars, a box around it all.
Signs, powers, floor division, decimal points and implied multiplication are refused: policies have used each of them
to reach targets that the four operations do not reach.
"""

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from evenkeel.rewards.extraction import answer_block
from evenkeel.rewards.verifier import Verdict, Verifier

# Characters; ten numbers of ten digits with every bracket fit in a quarter of it.
LONGEST_EXPRESSION = 512
# Numbers; four cost milliseconds, five already seconds.
LARGEST_SEARCH = 4

_CHARACTERS = re.compile(r"[0-9+\-*/()\[\]\s]*")
_SPELLINGS = {
    r"[$`]|\\(?:left|right|displaystyle)(?![a-z])|\\[()]": " ",
    "−": "-",
    r"×|·|\\(?:times|cdot)(?![a-z])": "*",
    r"÷|\\div(?![a-z])": "/",
    r"\\[dt]?frac ?\{([^{}]*)\} ?\{([^{}]*)\}": r"((\1)/(\2))",
    r"(?<=[\d)\]}])\s*\.\s*\Z": "",
    r"\A\s*\\boxed ?\{([^{}]*)\}\s*\Z": r"\1",
}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Countdown(Verifier):
    """Score 1 for an expression over the given numbers that equals the target, else 0.

    The reference is a mapping ``{"numbers": [79, 17, 60], "target": 36}``; other keys are ignored, NumPy arrays and
    integers are accepted. Anything else is unscored. The answer is the one ``<answer>`` block that ends the
    completion after the last ``</think>``; a closing ``= 36`` is allowed there and must name the target.

    Options:
        use_all: every given number must be used. The published task says "each number can only be used once", which
            asks for at most once, and that is the default.
    """

    use_all: bool = False

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score the answer in ``completion``. A bad completion is wrong, never unscored."""
        try:
            numbers, target = _problem(reference)
        except ValueError as error:
            return Verdict(None, None, str(error))
        block = answer_block(completion)
        if block.text is None:
            return Verdict(0.0, None, block.problem)
        fault = self._fault(block.text, numbers, target)
        return Verdict(float(not fault), block.text, fault or f"equals {target}")

    def gold_completion(self, reference: Any) -> str | None:
        """A completion with a solution found by search; ``None`` for more than four numbers or no solution."""
        try:
            numbers, target = _problem(reference)
        except ValueError:
            return None
        found = solution(numbers, target, use_all=self.use_all)
        return None if found is None else f"<think> {found} = {target} </think> <answer> {found} </answer>"

    def unanswerable(self, reference: Any) -> str:
        """A message if no expression equals the target; empty without a search for more than four numbers."""
        numbers, target = _problem(reference)
        if len(numbers) > LARGEST_SEARCH or solution(numbers, target, use_all=self.use_all) is not None:
            return ""
        used = "all of" if self.use_all else "some of"
        return f"no expression over {used} {list(numbers)} equals {target}"

    def _fault(self, answer: str, numbers: tuple[int, ...], target: int) -> str | None:
        for written, meant in _SPELLINGS.items():
            answer = re.sub(written, meant, answer)
        text, equals, claim = answer.partition("=")
        if equals and claim.strip() != str(target):
            return f"'= {claim.strip()[:40]}' stands after the expression; the target is {target}"
        literals: list[int] = []
        try:
            value = _value(_parsed(text), literals)
        except ZeroDivisionError:
            return "divides by zero"
        except ValueError:
            return "not an expression of whole numbers, + - * / and brackets"
        used, given = Counter(literals), Counter(numbers)
        if excess := used - given:
            return f"uses {sorted(excess.elements())} beyond the given {sorted(numbers)}"
        if self.use_all and used != given:
            return f"leaves {sorted((given - used).elements())} unused"
        return None if value == target else f"equals {value}, not {target}"


def _problem(reference: Any) -> tuple[tuple[int, ...], int]:
    """Numbers and target of a reference. Raises ``ValueError`` if they are unusable."""
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


def _parsed(text: str) -> ast.expr:
    """The syntax tree of ``text``, in bounded time. Raises ``ValueError`` if it is too long or not an expression."""
    if len(text) > LONGEST_EXPRESSION or not _CHARACTERS.fullmatch(text):
        raise ValueError
    try:
        return ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError from error


def _value(node: ast.expr, literals: list[int]) -> Fraction:
    """The exact value; appends the integers that it uses to ``literals``.

    Raises ``ValueError`` for anything but the four operations on whole numbers, ``ZeroDivisionError`` for x / 0.
    """
    match node:
        case ast.Constant(value=int(number)):
            literals.append(number)
            return Fraction(number)
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left, literals), _value(right, literals))
        case ast.List([inner]):  # in square brackets
            return _value(inner, literals)
    raise ValueError


_Term = tuple[Fraction, str]  # a value and its expression


def solution(numbers: Sequence[int], target: int, *, use_all: bool = False) -> str | None:
    """An expression over ``numbers``, each used at most once (exactly once with ``use_all``), equal to ``target``.

    Deterministic. ``None`` if no expression exists, and, without a search, for more than ``LARGEST_SEARCH`` numbers.
    Every inner operation is in brackets, also where precedence needs none.
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
    """All results of joining ``terms``: two of them are replaced by one until a single one is left."""
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

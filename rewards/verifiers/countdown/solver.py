"""A solution of a countdown problem by exhaustive search, small enough to be bounded."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

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

"""Arithmetic questions: distinct, with every intermediate result a small whole number, and the same for a seed."""

import random
from collections.abc import Hashable
from dataclasses import dataclass
from operator import add, mul, sub
from typing import NamedTuple

from evenkeel.rewards.generators.distinct import distinct

OPERATIONS = {"+": add, "-": sub, "*": mul}


class Step(NamedTuple):
    """One operation on two numbers, and its result."""

    left: int
    operation: str
    right: int
    value: int


@dataclass(frozen=True)
class ArithmeticProblem:
    """n ``numbers`` with n − 1 ``operations`` between them; products bind first."""

    numbers: tuple[int, ...]
    operations: tuple[str, ...]

    @property
    def expression(self) -> str:
        """Such as ``3 + 4 * 5``."""
        pairs = zip(self.operations, self.numbers[1:], strict=True)
        return " ".join([str(self.numbers[0]), *(f"{operation} {number}" for operation, number in pairs)])

    @property
    def question(self) -> str:
        """The task in words."""
        return f"What is {self.expression}?"

    @property
    def reference(self) -> str:
        """The reference for the verifier ``math_answer``."""
        return str(self.value)

    @property
    def value(self) -> int:
        """The result."""
        return self.steps[-1].value

    @property
    def steps(self) -> list[Step]:
        """The operations in the order in which they are done: products from the left, then sums from the left."""
        numbers, operations = list(self.numbers), list(self.operations)
        done = []
        for binding in ("*", "+-"):
            place = 0
            while place < len(operations):
                if operations[place] not in binding:
                    place += 1
                    continue
                left, operation, right = numbers[place], operations.pop(place), numbers.pop(place + 1)
                numbers[place] = OPERATIONS[operation](left, right)
                done.append(Step(left, operation, right, numbers[place]))
        return done

    @property
    def key(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Equal for questions that differ only in the order of terms and factors: the signed terms, sorted."""
        terms: list[tuple[str, list[int]]] = [("+", [self.numbers[0]])]
        for operation, number in zip(self.operations, self.numbers[1:], strict=True):
            if operation == "*":
                terms[-1][1].append(number)
            else:
                terms.append((operation, [number]))
        return tuple(sorted((sign, tuple(sorted(factors))) for sign, factors in terms))


def generate_arithmetic(
    count: int, *, num_numbers: int, max_number: int, max_result: int, operations: str, seed: int
) -> list[ArithmeticProblem]:
    """``count`` distinct questions over ``num_numbers`` numbers.

    Numbers are uniform in 1…``max_number``, operations uniform over the characters of ``operations`` (``+``, ``-``,
    ``*``). Every step gives a whole number in 0…``max_result``. Cut one list to get a training and a held-out split:
    no question is in both, in whatever order its terms and factors are written.

    Raises ``ValueError`` for other or no operations, and where the settings do not hold ``count`` distinct questions.
    """
    if not operations or not set(operations) <= OPERATIONS.keys():
        raise ValueError(f"{operations=}: write one or more of + - *, such as '+-'.")
    rng = random.Random(seed)

    def draw() -> tuple[Hashable, ArithmeticProblem] | None:
        numbers = tuple(rng.randint(1, max_number) for _ in range(num_numbers))
        problem = ArithmeticProblem(numbers, tuple(rng.choices(operations, k=num_numbers - 1)))
        return (problem.key, problem) if all(0 <= step.value <= max_result for step in problem.steps) else None

    return list(distinct(count, draw))

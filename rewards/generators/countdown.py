"""Countdown problems: solvable, distinct, and the same for the same seed."""

import operator
import random
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from evenkeel.rewards.generators.distinct import distinct

Style = Literal["sentence", "compact"]

_OPERATIONS = (operator.add, operator.sub, operator.mul, operator.truediv)


@dataclass(frozen=True)
class CountdownProblem:
    """One problem. ``numbers`` are in the order of the question; problems that differ only in it are the same problem.

    ``style`` of the question: ``sentence`` states the rules; ``compact`` is ``3 5 7 = 36``, for a policy trained on
    this task alone.
    """

    numbers: tuple[int, ...]
    target: int
    style: Style = "sentence"

    @property
    def question(self) -> str:
        """The task in ``style``."""
        if self.style == "compact":
            return f"{' '.join(map(str, self.numbers))} = {self.target}"
        numbers = ", ".join(str(number) for number in self.numbers)
        return f"Make {self.target} from the numbers {numbers} with +, -, * and /. Use each number at most once."

    @property
    def reference(self) -> dict[str, list[int] | int]:
        """The reference for the verifier ``countdown``."""
        return {"numbers": list(self.numbers), "target": self.target}


def generate_countdown(
    count: int, *, num_numbers: int, max_number: int, max_target: int, seed: int, style: Style = "sentence"
) -> list[CountdownProblem]:
    """``count`` distinct problems that have a solution with every number used; ``style`` is that of the question.

    Numbers are uniform in 1…``max_number``, with repetitions. The target is what a random chain of operations over
    all of them gives, kept where it is an integer in 1…``max_target`` and none of the numbers itself. Cut one list to
    get a training and a held-out split: no problem, in whatever order of its numbers, is in both.

    Raises ``ValueError`` where the settings do not hold ``count`` distinct problems.
    """
    rng = random.Random(seed)

    def draw() -> tuple[Hashable, CountdownProblem] | None:
        numbers = tuple(rng.randint(1, max_number) for _ in range(num_numbers))
        target = _random_value(numbers, rng)
        if not 1 <= target <= max_target or target in numbers:
            return None
        return (tuple(sorted(numbers)), target), CountdownProblem(numbers, target, style)

    return list(distinct(count, draw))


def _random_value(numbers: tuple[int, ...], rng: random.Random) -> int:
    """The result of a random chain over all numbers; 0, which is never a target, if it is not an integer."""
    terms = [Fraction(number) for number in numbers]
    while len(terms) > 1:
        left, right = terms.pop(rng.randrange(len(terms))), terms.pop(rng.randrange(len(terms)))
        operation = rng.choice(_OPERATIONS)
        if operation is operator.truediv and right == 0:
            return 0
        terms.append(operation(left, right))
    return int(terms[0]) if terms[0].denominator == 1 else 0

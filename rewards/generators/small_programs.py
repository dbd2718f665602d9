"""Functions of one number, described step by step: distinct, needing brackets, and the same for a seed."""

import random
from dataclasses import dataclass
from typing import Any

_WORDS = {"+": "add", "-": "subtract", "*": "multiply by"}
_FRUITLESS = 10_000  # draws in a row after which the settings hold no further function
_INPUTS = [x for x in range(-20, 21) if x not in (0, 1)]


@dataclass(frozen=True)
class ProgramProblem:
    """Start with x, do ``steps`` such as ``("+", 4)`` one after another, and return the result.

    ``inputs`` are what the function is called with by its tests.
    """

    steps: tuple[tuple[str, int], ...]
    inputs: tuple[int, ...]

    @property
    def question(self) -> str:
        """The task in words."""
        steps = ", ".join(f"{_WORDS[operation]} {number}" for operation, number in self.steps)
        return f"Write a Python function f(x). Start with x, {steps}, and return the result."

    @property
    def reference(self) -> dict[str, Any]:
        """What the ``code_tests`` verifier judges against: calls of ``f`` with their results, and a right program."""
        return {
            "fn_name": "f",
            "inputs": [[x] for x in self.inputs],
            "outputs": [self.value(x) for x in self.inputs],
            "solution": program(self.expressions[-1]),
        }

    @property
    def line(self) -> tuple[int, int]:
        """Slope and intercept; problems with the same ones ask for the same function."""
        return self.value(1) - self.value(0), self.value(0)

    @property
    def needs_brackets(self) -> bool:
        """Whether the steps written one after another without brackets are another function."""
        operations = "".join(operation for operation, _ in self.steps)
        return "*" in operations.lstrip("*")

    @property
    def expressions(self) -> list[str]:
        """The Python expression after each step, with brackets only where they are needed."""
        text, ends_in_sum, after = "x", False, []
        for operation, number in self.steps:
            text = f"({text}) * {number}" if operation == "*" and ends_in_sum else f"{text} {operation} {number}"
            ends_in_sum = operation != "*"
            after.append(text)
        return after

    def value(self, x: int) -> int:
        """What the function returns for ``x``."""
        for operation, number in self.steps:
            x = x * number if operation == "*" else x + number if operation == "+" else x - number
        return x


def program(expression: str) -> str:
    """The function that returns ``expression``, as Python."""
    return f"def f(x):\n    return {expression}"


def generate_programs(
    count: int, *, num_steps: int, max_number: int, num_inputs: int, seed: int
) -> list[ProgramProblem]:
    """``count`` problems of ``num_steps`` steps, no two of which ask for the same function.

    Operations are uniform over addition, subtraction and multiplication, numbers uniform in 2…``max_number``, kept
    where some product is of a sum, so that brackets are needed. Tests call the function with 0, 1 and other whole
    numbers within ±20. Cut one list to get a training and a held-out split: no function is in both.

    Raises ``ValueError`` for arguments below 2 (``count`` below 1), for more than 41 inputs, and where the settings do
    not hold ``count`` functions, as far as 10,000 fruitless draws in a row can tell.
    """
    if count < 1 or min(num_steps, max_number, num_inputs) < 2 or num_inputs > len(_INPUTS) + 2:
        raise ValueError(
            f"{count=}, {num_steps=}, {max_number=}, {num_inputs=}: write 2 or more, 1 or more for count, and at most "
            f"{len(_INPUTS) + 2} for num_inputs."
        )
    rng = random.Random(seed)
    problems: dict[tuple[int, int], ProgramProblem] = {}
    fruitless = 0
    while len(problems) < count:
        steps = tuple((rng.choice("+-*"), rng.randint(2, max_number)) for _ in range(num_steps))
        problem = ProgramProblem(steps, (0, 1, *rng.sample(_INPUTS, num_inputs - 2)))
        if problem.needs_brackets and problem.line not in problems:
            problems[problem.line] = problem
            fruitless = 0
        elif (fruitless := fruitless + 1) == _FRUITLESS:
            raise ValueError(
                f"only {len(problems)} distinct functions were found with {num_steps=}, {max_number=}, not "
                f"{count=}. Ask for fewer, or raise max_number."
            )
    return list(problems.values())

"""Functions of one number, described step by step: distinct, needing brackets, and the same for a seed."""

import random
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from evenkeel.rewards.generators.distinct import distinct

_WORDS = {"+": "add", "-": "subtract", "*": "multiply by"}
_INPUTS = [x for x in range(-20, 21) if x not in (0, 1)]


@dataclass(frozen=True)
class ProgramProblem:
    """Start with x, do ``steps`` such as ``("+", 4)`` in turn, return the result; tests call it with ``inputs``."""

    steps: tuple[tuple[str, int], ...]
    inputs: tuple[int, ...]

    @property
    def question(self) -> str:
        """The task in words."""
        steps = ", ".join(f"{_WORDS[operation]} {number}" for operation, number in self.steps)
        return f"Write a Python function f(x). Start with x, {steps}, and return the result."

    @property
    def reference(self) -> dict[str, Any]:
        """The reference for the verifier ``code_tests``: calls of ``f`` with their results, and a right program."""
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
        """True if the steps without brackets would be another function."""
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
        """The function's result for ``x``."""
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

    Operations are uniform over addition, subtraction and multiplication, numbers uniform in 2…``max_number``; only
    problems that multiply a sum are kept, so that brackets are needed. Tests call the function with 0, 1 and other
    whole numbers within ±20. Cut one list to get a training and a held-out split: no function is in both.

    Raises ``ValueError`` where the settings do not hold ``count`` functions.
    """
    rng = random.Random(seed)

    def draw() -> tuple[Hashable, ProgramProblem] | None:
        steps = tuple((rng.choice("+-*"), rng.randint(2, max_number)) for _ in range(num_steps))
        problem = ProgramProblem(steps, (0, 1, *rng.sample(_INPUTS, num_inputs - 2)))
        return (problem.line, problem) if problem.needs_brackets else None

    return list(distinct(count, draw))

"""Arithmetic questions: their values by Python's own parser, what makes two of them one, and their worked answers."""

import ast
import re
from typing import Any

import pytest

from evenkeel.rewards.generators.arithmetic import ArithmeticProblem, generate_arithmetic

SETTINGS: dict[str, Any] = {"num_numbers": 4, "max_number": 9, "max_result": 50, "operations": "+-*"}


def by_python(expression: str) -> int:
    """The value by Python's precedence and arithmetic, for an expression that is nothing but these."""
    assert re.fullmatch(r"[\d +*-]+", expression)
    value: int = eval(compile(ast.parse(expression, mode="eval"), "", "eval"), {})
    return value


def test_values_are_pythons_and_no_step_leaves_the_bounds() -> None:
    for problem in generate_arithmetic(400, **SETTINGS, seed=0):
        assert problem.reference == str(by_python(problem.expression))
        assert problem.question == f"What is {problem.expression}?"
        assert len(problem.steps) == 3
        assert all(0 <= step.value <= 50 for step in problem.steps)
        assert all(1 <= number <= 9 for number in problem.numbers)


def test_products_bind_first_equal_ones_go_from_the_left_and_the_order_makes_no_other_question() -> None:
    """2 + 3 * 4 * 5 − 6: 3 · 4 = 12, 12 · 5 = 60, 2 + 60 = 62, 62 − 6 = 56."""
    problem = ArithmeticProblem((2, 3, 4, 5, 6), ("+", "*", "*", "-"))
    assert [step.value for step in problem.steps] == [12, 60, 62, 56]
    # 2 + 3 * 4 − 1 and 4 * 3 − 1 + 2 have the terms +2, +3·4, −1; 2 − 3 * 4 + 1 has others
    problem = ArithmeticProblem((2, 3, 4, 1), ("+", "*", "-"))
    assert problem.key == ArithmeticProblem((4, 3, 1, 2), ("*", "-", "+")).key
    assert problem.key != ArithmeticProblem((2, 3, 4, 1), ("-", "*", "+")).key
    problems = generate_arithmetic(800, **SETTINGS, seed=1)
    assert len({problem.key for problem in problems}) == 800


def test_more_questions_than_there_are() -> None:
    """Of 1 and 1 there is one sum: 1 + 1."""
    with pytest.raises(ValueError, match="only 1 of 2"):
        generate_arithmetic(2, num_numbers=2, max_number=1, max_result=2, operations="+", seed=0)

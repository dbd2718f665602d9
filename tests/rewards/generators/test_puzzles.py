"""Questions of arithmetic by Python's own parser, small programs by running them, countdown: no two are the same."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.generators.arithmetic import ArithmeticProblem, generate_arithmetic
from evenkeel.rewards.generators.countdown import generate_countdown
from evenkeel.rewards.generators.small_programs import ProgramProblem, generate_programs
from evenkeel.rewards.verifiers.countdown import solution

ARITHMETIC: dict[str, Any] = {"num_numbers": 4, "max_number": 9, "max_result": 50, "operations": "+-*"}


def test_values_are_pythons_and_no_step_leaves_the_bounds() -> None:
    for problem in generate_arithmetic(400, **ARITHMETIC, seed=0):
        assert re.fullmatch(r"[\d +*-]+", problem.expression)
        assert problem.reference == str(eval(problem.expression, {}))
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
    problems = generate_arithmetic(800, **ARITHMETIC, seed=1)
    assert len({problem.key for problem in problems}) == 800


def test_more_questions_than_there_are() -> None:
    """Of 1 and 1 there is one sum: 1 + 1."""
    with pytest.raises(ValueError, match="only 1 of 2"):
        generate_arithmetic(2, num_numbers=2, max_number=1, max_result=2, operations="+", seed=0)


PROGRAMS = {"num_steps": 3, "max_number": 9, "num_inputs": 4}
STEPS = st.lists(st.tuples(st.sampled_from("+-*"), st.integers(2, 12)), min_size=1, max_size=6).map(tuple)


def test_the_words_the_values_and_the_program_say_the_same() -> None:
    """(x + 4) · 3 − 2 at 0, 1, −5: 10, 13, −5."""
    problem = ProgramProblem((("+", 4), ("*", 3), ("-", 2)), (0, 1, -5))
    assert problem.question == (
        "Write a Python function f(x). Start with x, add 4, multiply by 3, subtract 2, and return the result."
    )
    assert problem.expressions == ["x + 4", "(x + 4) * 3", "(x + 4) * 3 - 2"]
    assert problem.reference["fn_name"] == "f"
    assert problem.reference["inputs"] == [[0], [1], [-5]]
    assert problem.reference["outputs"] == [10, 13, -5]
    assert problem.reference["solution"] == "def f(x):\n    return (x + 4) * 3 - 2"


@given(STEPS, st.integers(-50, 50))
def test_expressions_compute_the_steps(steps: tuple[tuple[str, int], ...], x: int) -> None:
    problem = ProgramProblem(steps, ())
    names: dict[str, Any] = {}
    exec(problem.reference["solution"], names)
    assert names["f"](x) == problem.value(x)
    bare = " ".join(["x", *(f"{operation} {number}" for operation, number in steps)])
    if not problem.needs_brackets:
        assert problem.expressions[-1] == bare


def test_no_two_ask_for_the_same_function_and_every_one_needs_brackets() -> None:
    problems = generate_programs(800, **PROGRAMS, seed=0)
    probes = [tuple(problem.value(x) for x in (2, 7)) for problem in problems]
    assert len(set(probes)) == 800
    for problem in problems:
        assert "(" in problem.expressions[-1]
        assert problem.inputs[:2] == (0, 1)
        assert len(set(problem.inputs)) == 4


COUNTDOWN = {"num_numbers": 3, "max_number": 12, "max_target": 40}


def test_distinct_and_solvable_with_every_number() -> None:
    problems = generate_countdown(300, **COUNTDOWN, seed=0)
    assert len({(tuple(sorted(problem.numbers)), problem.target) for problem in problems}) == 300
    for problem in problems:
        assert all(1 <= number <= 12 for number in problem.numbers)
        assert 1 <= problem.target <= 40
        assert solution(problem.numbers, problem.target, use_all=True) is not None


def test_a_compact_question_is_of_the_same_problem() -> None:
    sentences, compact = (generate_countdown(20, **COUNTDOWN, seed=0, style=style) for style in ("sentence", "compact"))
    assert [problem.reference for problem in compact] == [problem.reference for problem in sentences]
    numbers, target = compact[0].numbers, compact[0].target
    assert compact[0].question == f"{numbers[0]} {numbers[1]} {numbers[2]} = {target}"

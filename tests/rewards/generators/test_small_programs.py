"""Small programs: the written expressions against the described steps, by running them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.generators.small_programs import ProgramProblem, generate_programs

SETTINGS = {"num_steps": 3, "max_number": 9, "num_inputs": 4}
STEPS = st.lists(st.tuples(st.sampled_from("+-*"), st.integers(2, 12)), min_size=1, max_size=6).map(tuple)
FUNCTION = r"def f\(x\):\n    return ([x\d +*()-]+)"


def returned(text: str, x: int) -> int:
    """What the function in ``text`` returns for ``x``; it may hold nothing but arithmetic."""
    function = re.search(FUNCTION, text)
    assert function is not None, text
    value: int = eval(function[1], {"x": x})
    return value


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
    assert returned(problem.reference["solution"], x) == problem.value(x)
    bare = " ".join(["x", *(f"{operation} {number}" for operation, number in steps)])
    if not problem.needs_brackets:
        assert problem.expressions[-1] == bare


def test_no_two_ask_for_the_same_function_and_every_one_needs_brackets() -> None:
    problems = generate_programs(800, **SETTINGS, seed=0)
    probes = [tuple(problem.value(x) for x in (2, 7)) for problem in problems]
    assert len(set(probes)) == 800
    for problem in problems:
        assert "(" in problem.expressions[-1]
        assert problem.inputs[:2] == (0, 1)
        assert len(set(problem.inputs)) == 4

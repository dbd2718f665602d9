"""Small programs: the written expressions against the described steps, by running them."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.rewards.generators.small_programs import ProgramProblem, generate_programs
from scripts.tiny_policy.small_programs_demonstrations import demonstration

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


def test_a_smaller_count_is_the_beginning_of_a_larger_one() -> None:
    assert generate_programs(50, **SETTINGS, seed=3) == generate_programs(200, **SETTINGS, seed=3)[:50]
    assert generate_programs(50, **SETTINGS, seed=3) != generate_programs(50, **SETTINGS, seed=4)


def test_more_functions_than_there_are() -> None:
    """(x ± 2) · 2: two functions of two steps need brackets."""
    with pytest.raises(ValueError, match="only 2 distinct functions"):
        generate_programs(3, num_steps=2, max_number=2, num_inputs=2, seed=0)


@pytest.mark.parametrize("wrong", [{"num_steps": 1}, {"max_number": 1}, {"num_inputs": 1}, {"num_inputs": 42}])
def test_settings_without_problems(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at most 41 for num_inputs"):
        generate_programs(5, **{**SETTINGS, **wrong}, seed=0)


def test_careful_demonstrations_are_right_and_hasty_ones_wrong_on_the_tests() -> None:
    rng = random.Random(0)
    for problem in generate_programs(300, **SETTINGS, seed=0):
        careful, hasty = (demonstration(problem, rng, careful=careful) for careful in (True, False))
        assert careful.startswith("<think>x ")
        assert hasty.startswith("<think></think>\n```python\n")
        assert all(text.endswith("\n```") for text in (careful, hasty))
        assert all(returned(careful, x) == problem.value(x) for x in problem.inputs)
        assert any(returned(hasty, x) != problem.value(x) for x in problem.inputs)

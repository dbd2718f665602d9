"""Which names the tests use as classes, whatever the answer makes of them."""

import ast

import pytest

from evenkeel.rewards.verifiers.code_tests.inside.classes import classes_in_tests

FIXTURE = """
import pytest
from solution import Stack, Volume

@pytest.fixture
def stack():
    return Stack(3)

def test_push(stack):
    stack.push(1)
    assert len(stack) == 1

def test_volume():
    stack = Volume(3)
    assert abs(stack - 27.0) < 1e-6
"""
UNIT_TEST = """
class TestBank:
    def setUp(self):
        self.bank = solution.Bank()
        self.volume = solution.Volume(3)

    def test_one(self):
        self.bank.open_account("x")
        assert abs(self.volume - 27.0) < 1e-6

    def test_two(self):
        result = solution.total(3)
        assert abs(result - 3) < 1

    def test_three(self):
        result = solution.Bank()
        assert result.owners == 0
"""


@pytest.mark.parametrize(
    ("code", "classes"),
    [
        ("assert abs(Volume(2) - 8.0) < 1e-6", set()),
        ("v = Volume(2)\nassert abs(v - 8.0) < 1e-6 and v.real == 8", set()),
        ("assert Words('a b').split() == ['a', 'b']", set()),
        ("r = Sort([2, 1])\nr.append(3)\nassert r == [1, 2, 3]", set()),
        ("assert F(1).__class__ is int and F.__name__ == 'F'", set()),
        ("r = f(1)\nr = g(2)\nassert r.push(1)", set()),
        ("assert f().upper() == 'A'", set()),
        ("import math\nassert math.isclose(Volume(2), 8)", set()),
        ("s = Stack([1])\nassert s.items == [1]", {"Stack"}),
        ("d = Counts([1])\nassert max(d, key=d.get) == 1 and d.items()", set()),
        ("s = stack(1)\ns.push(2)\nassert len(s) == 1", {"stack"}),
        ("q = Queue()\nq.append(2)\nassert len(q) == 1", {"Queue"}),
        ("assert Queue(3).is_empty()", {"Queue"}),
        ("assert isinstance(f(2), Card)", {"Card"}),
        ("assert isinstance(f(2), (Card, Deck))", {"Card", "Deck"}),
        ("assert Color.RED in f(2)", {"Color"}),
        ("assert (V(1) + V(2)).x == 3", {"V"}),
        ("total = V(1) + V(2)\nassert -total == V(3) and max([total, V(3)]).x == 3", {"V"}),
        ("assert Solution().find([1], 1) == 0", {"Solution"}),
        ("assert abs(Solution(2) - 3) < 1", set()),
        ("from solution import Stack as S\ns = S()\nassert s.is_empty()", {"Stack"}),
        ("import solution as s\nassert s.Stack().is_empty()", {"Stack"}),
        ("with Timer() as t:\n    pass\nassert t.elapsed > 0", {"Timer"}),
        (FIXTURE, {"Stack"}),
        ("import solution\n" + UNIT_TEST, {"Bank"}),
    ],
)
def test_classes(code: str, classes: set[str]) -> None:
    found = classes_in_tests(ast.parse(""), [ast.parse(code)], {})
    assert found - {"self", "math", "pytest"} == classes  # no names of the answer


def test_what_stands_before_the_tests_is_known_in_them() -> None:
    before, tests = ast.parse("s = Stack()"), [ast.parse("assert s.is_empty()"), ast.parse("assert abs(Area(2)) == 4")]
    assert classes_in_tests(before, tests, {}) == {"Stack"}


def test_a_candidate_is_the_entry_point() -> None:
    tests = [ast.parse("def check(candidate):\n    s = candidate(3)\n    assert s.push(1) == 1")]
    assert classes_in_tests(ast.parse(""), tests, {"candidate": "Stack"}) == {"Stack"}

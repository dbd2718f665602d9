"""Which names in the code of tests are the answer's."""

import ast

import pytest

from evenkeel.rewards.verifiers.code_tests.inside.names import names_of


@pytest.mark.parametrize(
    ("code", "of_answer", "builtins", "modules"),
    [
        ("assert f(1) == g(2)", {"f", "g"}, set(), set()),
        ("x = 1\nassert f(x) == [y for y in (1, 2)]", {"f"}, set(), set()),
        ("def check(candidate):\n    assert candidate(1) == h(2)", {"h"}, set(), set()),
        ("assert sorted(f([2, 1])) == list(range(2))", {"f"}, {"sorted", "list", "range"}, set()),
        ("import math\nassert math.isclose(f(1), 1)", {"f"}, set(), set()),
        ("assert f(1) == sys.getsizeof(1)", {"f", "sys"}, set(), {"sys"}),
        ("assert calendar(1) == 1", {"calendar"}, set(), set()),
        ("assert sum(10, 15) == 6", set(), {"sum"}, set()),
        ("def sum(*a): return 1\nassert sum(f()) == 1", {"f"}, set(), set()),
        ("try:\n    f()\nexcept ValueError as error:\n    assert str(error)", {"f"}, {"str"}, set()),
        ("from solution import f, g as h\nassert f(1) == h(2)", set(), set(), set()),
        ("with f() as c, open('x') as d:\n    assert c and d", {"f"}, {"open"}, set()),
        ("class A:\n    pass\nassert isinstance(f(), A)", {"f"}, {"isinstance"}, set()),
        ("assert (lambda x, *y, z=1, **k: x + z)(f()) == __name__", {"f"}, set(), set()),
    ],
)
def test_names(code: str, of_answer: set[str], builtins: set[str], modules: set[str]) -> None:
    names = names_of(ast.parse(code))
    assert names.of_answer() == of_answer
    assert names.called_builtins() == builtins
    assert names.modules() & names.of_answer() == modules

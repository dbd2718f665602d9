"""Numbers that math-verify rounds: closeness is relative, and infinity is near nothing else."""

import pytest
import sympy

from rewards.verifiers.math_answer.judgement import _close


@pytest.mark.parametrize(
    ("one", "other", "close"),
    [
        (sympy.Integer(2), sympy.Float(2), True),
        (sympy.Float("1e-20"), sympy.Float("2e-20"), False),
        (3 * sympy.sqrt(13), sympy.oo / 2, False),
        (sympy.oo, sympy.oo, True),
        (sympy.oo, -sympy.oo, False),
        (sympy.Symbol("x"), sympy.Integer(2), True),  # not for this rule to say
    ],
)
def test_constants_agree_in_relative_terms(one: sympy.Expr, other: sympy.Expr, close: bool):
    assert _close(one, other) is close

"""The tools that ship as functions."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

OPERATORS: Mapping[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
LARGEST_POWER_BITS = 4096


def calculator(expression: str) -> str:
    """Compute an arithmetic expression of numbers, + - * / // % ** and brackets.

    Args:
        expression: For example (3 + 4) * 2.

    Returns:
        The value.
    """
    value = _value(ast.parse(expression.strip(), mode="eval").body)
    return str(int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, exponent = _value(node.left), _value(node.right)
        if abs(exponent) * math.log2(max(abs(base), 2)) > LARGEST_POWER_BITS:
            raise ValueError(f"{base} ** {exponent} is too large.")
        return base**exponent
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    raise ValueError(f"{ast.unparse(node)!r} is not arithmetic.")


TOOLS: dict[str, Callable[..., Any]] = {"calculator": calculator}

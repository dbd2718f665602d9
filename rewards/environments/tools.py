"""Tools as functions: what ships, and how each call of one runs in a worker process that is ended at its limits."""

import ast
import math
import operator
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

from evenkeel.rewards.environments.user_objects import answer_of, asked, result_of
from evenkeel.rewards.isolation.workers import WorkerPool

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
    raise ValueError(f"{ast.unparse(node)!r} is not arithmetic: write numbers, + - * / // % ** and brackets.")


TOOLS: dict[str, Callable[..., Any]] = {"calculator": calculator}


def loaded(path: str) -> Callable[[Mapping[str, Any]], Any]:
    """In a worker: the function ``package.module:function``, called with arguments by name."""
    function = pkgutil.resolve_name(path)
    return lambda arguments: answer_of(lambda: function(**arguments))


def in_worker(function: Callable[..., Any], time_limit_s: float, memory_mb: int) -> Callable[..., Any]:
    """``function`` of a module, each call of it in a worker process, which is ended at its limits.

    Raises:
        Exception: in a call: as `result_of` raises.
    """
    path = f"{function.__module__}:{function.__qualname__}"
    memory = memory_mb << 20
    pool = WorkerPool(
        f"{__name__}:loaded", path, cpu_seconds=0.0, wall_seconds=time_limit_s, memory_bytes=memory, users=True
    )

    def together(calls: Sequence[Mapping[str, Any]]) -> list[Callable[[], Any]]:
        """The outcomes of several calls, made side by side."""
        results = asked(pool, [dict(arguments) for arguments in calls])
        return [partial(result_of, found, time_limit_s, memory_mb) for found in results]

    @wraps(function)
    def called(**arguments: Any) -> Any:
        (outcome,) = together([arguments])
        return outcome()

    called.together = together  # type: ignore[attr-defined]
    return called

"""MBPP's reference solutions: each passes its asserts, and none does once what it returns is changed."""

import ast
import json
from typing import Any

import pytest

from evenkeel.rewards.verifiers.code_tests.inside.names import names_of
from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests
from tests.paths import SHARED_DATA

# The answer's functions, each returning something else than before.
CHANGED = """
def _changed(value):
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float, complex)):
        return value + 1
    if isinstance(value, (str, list, tuple)):
        return value + type(value)(["changed"]) if not isinstance(value, str) else value + "changed"
    if isinstance(value, dict):
        return {**value, "changed": 1}
    if isinstance(value, (set, frozenset)):
        return value | {"changed"}
    return "changed"


def _changing(function):
    return lambda *positional, **keywords: _changed(function(*positional, **keywords))


"""


def rows() -> list[dict[str, Any]]:
    path = SHARED_DATA / "mbpp.jsonl"
    if not path.exists():
        pytest.skip("shared/data/mbpp.jsonl is not beside this checkout")
    read = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [row for row in read if row["task_id"] != 126]  # it asks for a function named sum


def functions_under_test(row: dict[str, Any]) -> list[str]:
    """What the asserts call and the solution defines as a function."""
    names = names_of(ast.parse("\n".join(row["test_list"])))
    called = names.of_answer()
    return [
        node.name for node in ast.parse(row["code"]).body if isinstance(node, ast.FunctionDef) and node.name in called
    ]


def with_changed_values(row: dict[str, Any]) -> str:
    names = functions_under_test(row)
    assert names, row["task_id"]
    return str(row["code"]) + CHANGED + "\n".join(f"{name} = _changing({name})" for name in names)


@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:invalid escape")
def test_solutions(every: int) -> None:
    everything = rows()
    assert len(everything) == 973
    sample = everything[::every]
    verifier = CodeTests(cpu_seconds=60)  # the slowest solution takes 5 seconds on an idle machine
    golds = [gold for row in sample if (gold := verifier.gold_completion(row)) is not None]
    right = verifier.judge_all(golds, sample)
    assert [
        (row["task_id"], verdict.reason) for row, verdict in zip(sample, right, strict=True) if verdict.score != 1
    ] == []
    changed = [f"```python\n{with_changed_values(row)}\n```" for row in sample]
    wrong = verifier.judge_all(changed, sample)
    assert [
        (row["task_id"], verdict.reason) for row, verdict in zip(sample, wrong, strict=True) if verdict.score != 0
    ] == []

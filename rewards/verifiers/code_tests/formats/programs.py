"""Tests that are code: assert statements, ``check(candidate)``, pytest functions."""

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from evenkeel.rewards.verifiers.code_tests.formats.packed import sequence, text_of
from evenkeel.rewards.verifiers.code_tests.kinds import TestProgram, UnusableTestsError


def asserts(statements: Sequence[Any], row: Mapping[str, Any]) -> TestProgram:
    """MBPP's ``test_list``, each statement one test, with ``test_imports`` and ``test_setup_code`` before them."""
    for number, statement in enumerate(statements):
        if "assert" not in _parsed(statement):
            raise UnusableTestsError(f"test {number} is {statement[:60]!r}, which asserts nothing")
    setup = "\n".join(filter(None, (text_of(row, "test_imports"), text_of(row, "test_setup_code"))))
    _parsed(setup)  # code, or refused
    return TestProgram("asserts", tuple(statements), setup=setup)


def whole_test(row: Mapping[str, Any]) -> TestProgram:
    """A row with ``test``: HumanEval(+), LeetCodeDataset (``check(candidate)``), MBPP+ (statements), or pytest."""
    source = text_of(row, "test")
    if "check(" in _parsed(source):
        entry_point = row.get("entry_point")
        if not isinstance(entry_point, str) or not _is_entry_point(entry_point):
            raise UnusableTestsError(f"entry_point = {entry_point!r:.60} names no function for check(candidate)")
        return TestProgram("check", (source,), entry_point, preamble=_preamble(row, entry_point))
    return source_text(source, row)


def functional(row: Mapping[str, Any]) -> TestProgram:
    """rLLM's LeetCode rows: a ``check(candidate)`` and, after it, the call that names what is checked."""
    source = text_of(row, "functional")
    if row.get("entry_point"):
        return whole_test({**row, "test": source})
    if "check(" not in _parsed(source):
        return source_text(source, {})
    tree = ast.parse(source)
    checked = {_checked(node) for node in tree.body} - {""}
    if len(checked) != 1 or not _is_entry_point(entry_point := checked.pop()):
        raise UnusableTestsError("functional calls check(candidate) with no function. Map entry_point too")
    tree.body = [node for node in tree.body if not _checked(node)]
    return TestProgram("check", (ast.unparse(tree),), entry_point, preamble=_preamble(row, entry_point))


def pytest_functions(source: str) -> TestProgram:
    """KodCode's ``test_code``: functions ``test_…`` that import from ``solution``."""
    _parsed(source)  # code, or refused
    return TestProgram("pytest", (source,))


def source_text(text: str, row: Mapping[str, Any]) -> TestProgram:
    """Tests given as code alone, with the setup in ``row``."""
    if any(name.lower().startswith("test") for name in _parsed(text)):
        return pytest_functions(text)
    return asserts([text], row)


def list_of_texts(value: Any) -> list[str] | None:
    """``value`` as a list if it is a nonempty list of texts; else empty or ``None``."""
    items = sequence(value)
    return items if items and all(isinstance(item, str) for item in items) else None


# A row's tests are read once for each of its completions, and may hold megabytes.
@lru_cache(maxsize=4096)
def _parsed(source: str) -> frozenset[str]:
    """Top-level names of the code, ``check(`` if it defines ``check``, and ``assert`` if it asserts or raises."""
    tree = ast.parse(source)
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    if any(isinstance(node, ast.Assert | ast.Raise) or _is_assertion(node) for node in ast.walk(tree)):
        names.add("assert")
    return frozenset(names | {"check("} if "check" in names else names)


def _is_assertion(node: ast.AST) -> bool:
    """True for calls such as ``np.testing.assert_allclose``, ``self.assertEqual``, ``pytest.raises``, ``fail``."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called.startswith("assert") or called in ("raises", "fail")


def _checked(node: ast.stmt) -> str:
    """The argument of a call of ``check`` with one; empty for another statement."""
    match node:
        case ast.Expr(ast.Call(ast.Name("check"), [argument], [])):
            return ast.unparse(argument)
    return ""


def _is_entry_point(text: str) -> bool:
    """True for a name or dotted name, also with a constructor call: ``Solution().rotate``."""
    return all(part.removesuffix("()").isidentifier() for part in text.split("."))


def _preamble(row: Mapping[str, Any], entry_point: str) -> str:
    """The prompt's imports, helpers and classes, without the function that it asks for; empty for prose."""
    try:
        tree = ast.parse(text_of(row, "prompt"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    asked = entry_point.replace("()", "").split(".")[0]
    tree.body = [node for node in tree.body if getattr(node, "name", None) != asked]
    return ast.unparse(tree)

"""Detection of the names of the answer that the tests use as classes: the operators of their objects are under test.

Only the tests decide, never the answer or the spelling of a name, which an answer could choose so as to score itself.
A name is a class if the tests

- pass it to ``isinstance`` or ``issubclass``;
- use an attribute of it that no function has (``Color.RED``);
- use an attribute that no plain value has on the result of calling it: directly (``Stack(3).push(1)``), after an
  operation (``(V(1) + 2).x``), or by a variable. ``Mean(xs).real`` shows nothing: numbers have it.
"""

import ast
import builtins
import datetime
import decimal
import fractions
import io
import pathlib
import re
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import numpy

from evenkeel.rewards.verifiers.code_tests.inside.names import ANSWER_MODULE

_OF_FUNCTIONS = {*dir(types.FunctionType), *dir(builtins.len), "cache_clear", "cache_info", "cache_parameters"}


def classes_in_tests(shared: ast.Module, tests: Sequence[ast.Module], known_as: Mapping[str, str]) -> set[str]:
    """Names that the tests use as classes; some of them may not be the answer's.

    Args:
        shared: code that runs before the tests.
        tests: their code; assignments in one function are not known in another.
        known_as: name in the tests → name in the answer: ``{"candidate": "Stack"}``.
    """
    names = _Names([shared, *tests], known_as)
    found = {path for node in names.nodes for path in _checked(node, names)}
    for tree in tests:
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        for scope in ([], *([function] for function in functions)):
            nodes = list(ast.walk(ast.Module([*shared.body, *outside, *scope], [])))
            made = _made(nodes, names)
            found |= {_shown(node, names, made) for node in nodes if isinstance(node, ast.Attribute)}
    return found - {""}


class _Names:
    """Names of the answer in expressions of the tests."""

    def __init__(self, trees: Sequence[ast.AST], known_as: Mapping[str, str]) -> None:
        self.nodes = [node for tree in trees for node in ast.walk(tree)]
        self._known_as = dict(known_as)
        self._modules = {ANSWER_MODULE}
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and node.module == ANSWER_MODULE:
                self._known_as |= {alias.asname: alias.name for alias in node.names if alias.asname}
            elif isinstance(node, ast.Import):
                self._modules |= {alias.asname for alias in node.names if alias.name == ANSWER_MODULE and alias.asname}

    def of(self, node: ast.AST) -> str:
        """The name that ``node`` reads, as in the answer's module; empty if it is not a name."""
        if isinstance(node, ast.Name):
            return "" if node.id in self._modules else self._known_as.get(node.id, node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._modules:
            return node.attr
        return ""


def _checked(node: ast.AST, names: _Names) -> Iterator[str]:
    """The classes of ``isinstance(value, …)``."""
    if isinstance(node, ast.Call) and names.of(node.func) in ("isinstance", "issubclass") and len(node.args) == 2:
        kinds = node.args[1]
        yield from map(names.of, kinds.elts if isinstance(kinds, ast.Tuple) else [kinds])


def _shown(node: ast.Attribute, names: _Names, made: Mapping[str, str]) -> str:
    """The class that the use of an attribute shows; empty if it shows none."""
    subject, attribute = node.value, node.attr
    if attribute in PLAIN_ATTRIBUTES:
        return ""
    if (variable := ast.unparse(subject)) in made:
        return made[variable]
    return _called(subject, names) or ("" if attribute in _OF_FUNCTIONS else names.of(subject))


def _called(node: ast.AST, names: _Names) -> str:
    """The name of the answer that ``node``, or an operand of it, calls; empty if there is none."""
    if isinstance(node, ast.BinOp):
        return _called(node.left, names) or _called(node.right, names)
    called = names.of(node.func) if isinstance(node, ast.Call) else ""
    return "" if hasattr(builtins, called) else called


def _made(nodes: Sequence[ast.AST], names: _Names) -> dict[str, str]:
    """Variable, as written → the name whose call it holds; empty if it is also assigned other values."""
    values: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for target, value in _assigned(node):
            values[ast.unparse(target)].add(_called(value, names))
    return {variable: given.pop() if len(given) == 1 else "" for variable, given in values.items()}


def _assigned(node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Pairs of target and value."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        return [(node.target, node.value)]
    if isinstance(node, ast.With):
        return [(item.optional_vars, item.context_expr) for item in node.items if item.optional_vars]
    return []


_KINDS: tuple[type, ...] = (
    *(bool, int, float, complex, str, bytes, bytearray, memoryview, list, tuple, dict, set, frozenset, range, slice),
    *(deque, Counter, OrderedDict, defaultdict, ChainMap, decimal.Decimal, fractions.Fraction, BaseException),
    *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta, re.Match, re.Pattern, io.StringIO),
    *(pathlib.PosixPath, types.GeneratorType, type({}.keys()), type({}.items()), type(iter([]))),
    *(numpy.ndarray, numpy.float64, numpy.int64),
)
_OF_TABLES = """iloc loc at iat columns index dtypes empty head tail equals to_dict groupby to_numpy isna isnull notna
nunique value_counts drop merge apply map""".split()  # noqa: SIM905 — as a list it would be twenty lines
_OF_NAMED_TUPLES = ("_fields", "_asdict", "_replace")
PLAIN_ATTRIBUTES = frozenset({*_OF_TABLES, *_OF_NAMED_TUPLES, *(name for kind in _KINDS for name in dir(kind))})

"""Names that the code of tests imports, reads, calls and binds, and names of the answer that it uses as classes.

The operators of their objects are under test. Only the tests decide, never the answer or the spelling of a name, which
an answer could choose so as to score itself. A name is a class if the tests

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
import importlib.util
import io
import pathlib
import re
import sys
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy

ANSWER_MODULE = "solution"
"""The module from which published pytest files import the answer."""

_SAME_PROCESS = {"unittest.mock", "mock.patch", "contextlib.redirect_stdout", "contextlib.redirect_stderr"} | {
    f"sys.{stream}" for stream in ("stdin", "stdout", "stderr")
}
"""Names that work only in the process of the answer, which is not that of the tests."""

THIRD_PARTY = {"np": "numpy", "numpy": "numpy", "pd": "pandas", "pandas": "pandas"}
"""Customary name → third-party module."""

_GIVEN = {"__name__", "__file__"}


@dataclass
class Names:
    """Names in a piece of code, whatever their scope.

    Attributes:
        bound: assigned, defined, imported, or taken as parameters.
        read: looked up → how often.
        before_dot: looked up for an attribute → how often.
        called: called directly.
        imported: packages.
        from_answer: imported from the answer's module.
        dotted: names with an attribute (``sys.stdin``), and imported modules.
        classes: expressions of base classes and of ``except`` clauses.
    """

    bound: set[str] = field(default_factory=set)
    read: Counter[str] = field(default_factory=Counter)
    before_dot: Counter[str] = field(default_factory=Counter)
    called: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    from_answer: set[str] = field(default_factory=set)
    dotted: set[str] = field(default_factory=set)
    classes: list[ast.expr] = field(default_factory=list)

    def of_answer(self) -> set[str]:
        """Names that the code reads and neither it nor Python defines. Builtins are never the answer's."""
        read = set(self.read) - self.bound - _GIVEN
        return {name for name in read if not hasattr(builtins, name)}

    def modules(self) -> set[str]:
        """Modules that the code uses without importing them, including ``np``, ``pd`` and ``pytest``."""
        return {
            name
            for name, count in self.before_dot.items()
            if count == self.read[name] and (name in sys.stdlib_module_names or name in THIRD_PARTY or name == "pytest")
        }

    def not_supported(self, pytest_names: Collection[str]) -> str:
        """Why the code needs the answer's process, or more of pytest than the stand-in has; empty if it does not."""
        of_pytest = {name for name in self.dotted if name.startswith("pytest.")}
        unknown = of_pytest - {f"pytest.{name}" for name in pytest_names} | (self.dotted & _SAME_PROCESS)
        return f"the tests use {min(unknown)}, which is not supported" if unknown else ""

    def problem_of_classes(self, theirs: set[str]) -> str:
        """Why the code needs a class of the answer itself (as a base, or in ``except``); empty if it does not."""
        theirs = theirs | self.from_answer
        for expression in self.classes:
            if any(isinstance(node, ast.Name) and node.id in theirs for node in ast.walk(expression)):
                return f"the tests derive from or catch {ast.unparse(expression)} of the answer, which is not supported"
        return ""


def names_of(tree: ast.AST) -> Names:
    """The names in ``tree``."""
    names = Names()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                names.read[node.id] += 1
            else:
                names.bound.add(node.id)
        elif not isinstance(node, ast.Constant):
            _add(node, names)
    return names


def is_installed(package: str) -> bool:
    """True if ``package`` can be imported here."""
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def is_star_import(node: ast.AST) -> bool:
    """True if ``node`` is ``from solution import *``."""
    return isinstance(node, ast.ImportFrom) and node.module == ANSWER_MODULE and node.names[0].name == "*"


def _add(node: ast.AST, names: Names) -> None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        names.before_dot[node.value.id] += 1
        names.dotted.add(f"{node.value.id}.{node.attr}")
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        names.called.add(node.func.id)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names.bound.add(node.name)
        names.classes += node.bases if isinstance(node, ast.ClassDef) else []
    elif isinstance(node, ast.arg):
        names.bound.add(node.arg)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        _add_import(node, names)
    elif isinstance(node, ast.ExceptHandler):
        names.bound |= {node.name} if node.name else set()
        names.classes += [node.type] if node.type else []


def _add_import(node: ast.Import | ast.ImportFrom, names: Names) -> None:
    bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    names.bound |= bound
    if isinstance(node, ast.Import):
        names.imported |= {alias.name.partition(".")[0] for alias in node.names}
        names.dotted |= {alias.name for alias in node.names}
    elif node.module:
        names.dotted |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        names.imported.add(node.module.partition(".")[0])
        names.from_answer |= bound if node.module == ANSWER_MODULE else set()


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

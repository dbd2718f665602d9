"""Names that the code of tests imports, reads, calls and binds, found in one walk over it."""

import ast
import builtins
import importlib.util
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

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

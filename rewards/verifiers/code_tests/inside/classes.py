"""Which names of the answer the tests use as classes. Their objects are under test with their operators.

The tests are asked, never the answer and never the spelling of a name: whatever an answer can choose it could choose so
as to be its own judge. A name is a class's where the tests

- pass it to ``isinstance`` or ``issubclass``;
- use an attribute of it that no function has (``Color.RED``);
- use an attribute that no plain value has of what calling it gave, at once (``Stack(3).push(1)``), under the variable
  that it was assigned to, or after an operation (``(V(1) + V(2)).x``). ``Mean(xs).real`` says nothing: numbers have it;
- compare such an attribute with something where plain values have a method of that name (``s.items == [1]``);
- fill what calling it without arguments gave (``q = Queue()``, ``q.append(1)``), which nobody does with a result;
- call it without arguments and it is ``Solution``, the class in which competitive problems ask for a method.
"""

import ast
import builtins
import datetime
import decimal
import fractions
import importlib
import io
import pathlib
import re
import types
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from evenkeel.rewards.verifiers.code_tests.inside.names import ANSWER_MODULE, is_installed

_OF_FUNCTIONS = {*dir(types.FunctionType), *dir(builtins.len), "cache_clear", "cache_info", "cache_parameters"}
_ONE_OF_ITS_ARGUMENTS = {"max", "min", "next", "sum", "copy", "deepcopy", "reversed", "iter"}

Makers = Mapping[str, ast.Call | None]
"""A variable, as it is written, to a call whose result it holds; ``None`` where it holds other things too."""


def classes_in_tests(shared: ast.Module, tests: Sequence[ast.Module], known_as: Mapping[str, str]) -> set[str]:
    """Names of the answer that the code of the tests uses as classes, perhaps among others that are not the answer's.

    Args:
        shared: what runs before the tests.
        tests: their code; what is assigned in one is not known in another.
        known_as: names under which the tests know another one of the answer's: ``{"candidate": "Stack"}``.
    """
    names = _Names([shared, *tests], known_as)
    found = {path for node in names.nodes for path in _checked(node, names)}
    for scope in (scope for tree in tests for scope in _scopes(shared, tree)):
        nodes = list(ast.walk(scope))
        makers = _variables(nodes, names)
        found |= {_shown(node, names, makers) for node in nodes if isinstance(node, ast.Attribute)}
        compared = [side for node in nodes if isinstance(node, ast.Compare) for side in (node.left, *node.comparators)]
        found |= {_compared(side, names, makers) for side in compared if isinstance(side, ast.Attribute)}
    calls = [node for node in names.nodes if isinstance(node, ast.Call) and names.of(node.func) == "Solution"]
    if calls and not any(call.args or call.keywords for call in calls):
        found.add("Solution")
    return found - {""}


class _Names:
    """What expressions of the tests name of the answer."""

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
        """The name that ``node`` reads, as the answer's module knows it; empty where it is not a name of a module."""
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


def _shown(node: ast.Attribute, names: _Names, makers: Makers) -> str:
    """The class that the use of an attribute shows; empty where it shows none."""
    subject, attribute = node.value, node.attr
    if (made := _made(subject, names, makers)) is not None:
        filled = attribute in FILLING and not isinstance(subject, ast.Call) and not (made.args or made.keywords)
        return names.of(made.func) if filled or attribute not in PLAIN_ATTRIBUTES else ""
    if ast.unparse(subject) in makers or attribute in _OF_FUNCTIONS or attribute in PLAIN_ATTRIBUTES:
        return ""
    return names.of(subject)


def _compared(node: ast.Attribute, names: _Names, makers: Makers) -> str:
    """The class that an attribute shows which is compared, not called."""
    made = _made(node.value, names, makers) if node.attr in PLAIN_METHODS else None
    return names.of(made.func) if made else ""


def _made(node: ast.AST | None, names: _Names, makers: Makers) -> ast.Call | None:
    """A call of the answer's name whose kind of result ``node`` is; ``None`` where it is unknown."""
    if isinstance(node, ast.BinOp):
        return _made(node.left, names, makers) or _made(node.right, names, makers)
    if isinstance(node, ast.UnaryOp):
        return _made(node.operand, names, makers)
    if isinstance(node, ast.List | ast.Tuple):
        return next((made for item in node.elts if (made := _made(item, names, makers))), None)
    if isinstance(node, ast.Name | ast.Attribute):
        return makers.get(ast.unparse(node))
    if not isinstance(node, ast.Call):
        return None
    called = names.of(node.func)
    if called in _ONE_OF_ITS_ARGUMENTS:
        return next((made for argument in node.args if (made := _made(argument, names, makers))), None)
    return node if called and not hasattr(builtins, called) else None


def _variables(nodes: Sequence[ast.AST], names: _Names) -> Makers:
    makers: dict[str, ast.Call | None] = {}
    values: dict[str, list[ast.AST]] = defaultdict(list)
    for node in nodes:
        for target, value in _assigned(node):
            values[ast.unparse(target)].append(value)
    for variable, given in values.items():  # in the order of the code: what a value is made of comes first
        made = [_made(value, names, makers) for value in given]
        same = len({call and names.of(call.func) for call in made}) == 1
        makers[variable] = made[0] if same else None
    return makers


def _assigned(node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Pairs of target and value; a function that is decorated may be a fixture, which tests take by its name."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        return [(node.target, node.value)]
    if isinstance(node, ast.With):
        return [(item.optional_vars, item.context_expr) for item in node.items if item.optional_vars]
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        given = [part.value for part in ast.walk(node) if isinstance(part, ast.Return | ast.Yield) and part.value]
        return [(ast.Name(node.name, ast.Load()), value) for value in given]
    return []


def _scopes(shared: ast.Module, tree: ast.Module) -> list[ast.Module]:
    """The parts of the tests in which a variable is one thing: each function, each method, with what it can see."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    fixtures = [node for node in functions if isinstance(node, ast.FunctionDef) and node.decorator_list]
    seen: list[ast.stmt] = [*shared.body, *(node for node in tree.body if node not in functions), *fixtures]
    scopes: list[list[ast.stmt]] = [[]]
    for node in functions:
        if isinstance(node, ast.FunctionDef):
            scopes.append([node])
            continue
        set_up = [part for part in ast.walk(node) if isinstance(part, ast.Assign) and _is_of_self(part.targets[0])]
        methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        scopes += [[*set_up, method] for method in methods]
    return [ast.Module([*seen, *scope], []) for scope in scopes]


def _is_of_self(target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")
    )


_KINDS: tuple[type, ...] = (
    *(bool, int, float, complex, str, bytes, bytearray, memoryview, list, tuple, dict, set, frozenset, range, slice),
    *(deque, Counter, OrderedDict, defaultdict, ChainMap, decimal.Decimal, fractions.Fraction, BaseException),
    *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta, re.Match, re.Pattern, io.StringIO),
    *(pathlib.PosixPath, types.GeneratorType, type({}.keys()), type({}.items()), type(iter([]))),
)
_OF_TABLES = """iloc loc at iat columns index dtypes empty head tail equals to_dict groupby to_numpy isna isnull notna
nunique value_counts drop merge apply map""".split()  # noqa: SIM905 — as a list it would be twenty lines
_OF_NAMED_TUPLES = ("_fields", "_asdict", "_replace")


def _of_arrays() -> tuple[type, ...]:
    if not is_installed("numpy"):
        return ()
    numpy = importlib.import_module("numpy")
    return numpy.ndarray, numpy.float64, numpy.int64


_ATTRIBUTES = [(name, getattr(kind, name, None)) for kind in (*_KINDS, *_of_arrays()) for name in dir(kind)]

PLAIN_ATTRIBUTES = frozenset({*_OF_TABLES, *_OF_NAMED_TUPLES, *(name for name, _ in _ATTRIBUTES)})
PLAIN_METHODS = PLAIN_ATTRIBUTES.difference(
    _OF_TABLES, (name for name, value in _ATTRIBUTES if not callable(value) or name.startswith("__"))
)
"""Those that are methods wherever they are found: no plain value has them as something to compare."""
FILLING = frozenset({"append", "appendleft", "add", "insert", "extend", "update", "setdefault"})

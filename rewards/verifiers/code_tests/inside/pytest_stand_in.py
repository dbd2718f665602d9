"""A stand-in for the parts of pytest that tests of functions use, for a process without pytest.

``raises``, ``approx``, ``fail``, ``param`` and ``mark`` (``parametrize``; marks that skip or expect a failure are not
supported, others do nothing).
"""

import functools
import inspect
import itertools
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evenkeel.rewards.verifiers.code_tests.inside.remote import NotSupportedError, Remote, plain_value

NAMES = ("approx", "fail", "main", "mark", "param", "raises")
Test = tuple[str, Callable[[], Any]]


def module() -> types.ModuleType:
    """The module for ``import pytest``."""
    stand_in = types.ModuleType("pytest")
    vars(stand_in).update({name: globals()[name] for name in NAMES})
    return stand_in


def collected(names: Mapping[str, Any]) -> list[Test]:
    """The tests among ``names``, one for every set of parameters, in their order.

    Raises:
        NotSupportedError: a test takes a fixture.
    """
    tests: list[Test] = []
    for name, value in list(names.items()):
        if name.startswith("test") and isinstance(value, types.FunctionType):
            tests += _variants(name, value, value)
        elif isinstance(value, type) and (name.startswith("Test") or _is_unit_test(value)):
            tests += _of_class(name, value)
    return tests


class raises:  # noqa: N801 — pytest's name
    """The block must raise ``expected``, with a text in which ``match`` is found."""

    def __init__(self, expected: Any, *call: Any, match: str | None = None, **keywords: Any) -> None:
        self.expected = expected if isinstance(expected, tuple) else (expected,)
        self.pattern = match
        self.value: Any = None
        self.type: Any = None
        if call:
            function, *arguments = call
            with self:
                function(*arguments, **keywords)

    def __enter__(self) -> "raises":
        return self

    def __exit__(self, kind: Any, error: Any, _: Any) -> bool:
        if error is None:
            raise AssertionError(f"did not raise {self.expected}")
        self.value, self.type = error, kind
        if not any(_is_a(error, expected) for expected in self.expected):
            return False
        if self.pattern is not None:
            self.match(self.pattern)
        return True

    def match(self, pattern: str) -> bool:
        assert re.search(pattern, str(self.value)), f"{pattern!r} is not in {str(self.value)!r}"
        return True


class approx:  # noqa: N801 — pytest's name
    """Numbers, also in a list, tuple, dict or array, within pytest's tolerance: 1e-6 relative, 1e-12 absolute."""

    def __init__(self, expected: Any, rel: Any = None, abs: Any = None, nan_ok: bool = False) -> None:
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"about {self.expected!r}"

    def __eq__(self, actual: object) -> bool:
        return self._close(self.expected, actual)

    def _close(self, expected: Any, actual: Any) -> bool:
        if isinstance(actual, Remote):
            if (plain := plain_value(actual)) is actual:
                return False
            actual = plain
        expected, actual = (value.tolist() if hasattr(value, "tolist") else value for value in (expected, actual))
        if isinstance(expected, Mapping):
            return (
                isinstance(actual, Mapping)
                and expected.keys() == actual.keys()
                and all(self._close(value, actual[key]) for key, value in expected.items())
            )
        if isinstance(expected, Sequence) and not isinstance(expected, str | bytes):
            return (
                isinstance(actual, list | tuple)
                and len(expected) == len(actual)
                and all(map(self._close, expected, actual))
            )
        if not isinstance(expected, int | float | complex) or not isinstance(actual, int | float | complex):
            return bool(expected == actual)
        if expected != expected:
            return self.nan_ok and actual != actual
        relative = 1e-6 if self.rel is None and self.abs is None else self.rel or 0.0
        tolerance = max(relative * abs(expected), 1e-12 if self.abs is None else self.abs)
        return expected == actual or abs(expected - actual) <= tolerance < float("inf")


def fail(reason: str = "", *_: Any, **__: Any) -> None:
    """Fail the test."""
    raise AssertionError(reason)


def main(*_: Any, **__: Any) -> int:
    """Do nothing: the tests are run anyway."""
    return 0


def param(*values: Any, **_: Any) -> Any:
    """One set of parameters; its name and marks are ignored."""
    return _Parameters(values)


class _Parameters(tuple[Any, ...]):
    pass


class _Marks:
    def parametrize(self, names: Any, values: Any, **options: Any) -> Callable[[Any], Any]:
        if options.get("indirect"):
            raise NotSupportedError("parametrize with indirect")
        keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        rows = [value if isinstance(value, _Parameters) or len(keys) > 1 else (value,) for value in values]

        def decorated(function: Any) -> Any:
            parameters = [dict(zip(keys, row, strict=True)) for row in rows]
            function.parameters = [parameters, *getattr(function, "parameters", [])]
            return function

        return decorated

    def __getattr__(self, name: str) -> Any:
        if name in ("skip", "skipif", "xfail"):
            raise NotSupportedError(f"mark.{name}")

        def mark(*arguments: Any, **_: Any) -> Any:
            return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else lambda function: function

        return mark


mark = _Marks()


def _is_a(error: BaseException, expected: Any) -> bool:
    if isinstance(expected, Remote):  # an exception class of the answer: asked where it lives
        theirs = getattr(error, "remote", None)
        return theirs is not None and isinstance(theirs, expected)  # type: ignore[arg-type]
    kinds = getattr(error, "remote_kinds", None)
    # An exit arrives as a RuntimeError.
    if kinds is not None and getattr(expected, "__module__", "") == "builtins":
        return expected.__name__ in kinds
    return isinstance(error, expected)


def _of_class(name: str, kind: type) -> Iterator[Test]:
    for method_name, method in list(vars(kind).items()):
        if method_name.startswith("test") and isinstance(method, types.FunctionType):
            own = functools.partial(_on_new_object, kind, method_name)
            yield from _variants(f"{name}.{method_name}", method, own)


def _is_unit_test(kind: type) -> bool:
    return any(base.__module__ == "unittest.case" for base in kind.__mro__)


def _on_new_object(kind: type, name: str, **arguments: Any) -> None:
    """Run a test method on a new object, after its setup methods."""
    instance: Any = kind(name) if _is_unit_test(kind) else kind()
    for set_up_name in ("setUpClass", "setup_class", "setUp", "setup_method"):
        set_up = getattr(instance, set_up_name, None)
        if set_up is not None:
            set_up(*[getattr(instance, name)][: len(inspect.signature(set_up).parameters)])
    getattr(instance, name)(**arguments)


def _variants(name: str, function: Any, call: Callable[..., Any]) -> Iterator[Test]:
    if inspect.iscoroutinefunction(function):
        raise NotSupportedError(f"{name} is asynchronous")
    parameters = getattr(function, "parameters", [])
    declared = {key for part in parameters for row in part for key in row} | {"self"}
    for key, parameter in inspect.signature(function).parameters.items():
        if key not in declared and parameter.default is parameter.empty:
            raise NotSupportedError(f"the fixture {key}")
    for row in itertools.product(*parameters):
        yield name, functools.partial(call, **{key: value for part in row for key, value in part.items()})

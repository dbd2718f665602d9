"""The process that runs tests that are code. The answer is not in it; its names are stand-ins.

It sends ``["ready"]``, or ``["unusable", why]`` if the tests cannot be run for any answer. After the next frame it
sends ``["collected", number]``, ``["tested", passed, why]`` for each test, and ``["done"]``, with requests to the
answer in between. A frame begins with ``T`` for the trainer and ``Q`` for the answer.
"""

import ast
import functools
import importlib
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from evenkeel.rewards.verifiers.code_tests.codec import decode, encode
from evenkeel.rewards.verifiers.code_tests.inside import pytest_stand_in
from evenkeel.rewards.verifiers.code_tests.inside.instances import classes_in
from evenkeel.rewards.verifiers.code_tests.inside.names import (
    ANSWER_MODULE,
    THIRD_PARTY,
    classes_in_tests,
    is_installed,
    is_star_import,
    names_of,
)
from evenkeel.rewards.verifiers.code_tests.inside.remote import TESTS_MODULE, Connection, NotSupportedError
from evenkeel.rewards.verifiers.code_tests.inside.standard_names import standard_names


def serve(channel: Any) -> None:
    """Check the tests, wait until the answer is loaded, and run them."""
    specification = decode(channel.receive())

    def exchange(frame: bytes) -> bytes:
        channel.send(b"Q" + frame)
        reply: bytes = channel.receive()
        return reply

    tests = Tests(specification, Connection(exchange))
    if problem := tests.problem():
        channel.send(b"T" + encode(["unusable", problem]))
        return
    channel.send(b"T" + encode(["ready"]))
    channel.receive()
    try:
        for report in tests.reports():
            channel.send(b"T" + encode(report))
        channel.send(b"T" + encode(["done"]))
    except NotSupportedError as error:
        channel.send(b"T" + encode(["unusable", f"{error}, which is not supported"]))


class Tests:
    """The code of the tests, and its globals."""

    def __init__(self, specification: dict[str, Any], connection: Connection) -> None:
        self._kind: str = specification["kind"]
        self._entry_point: str = specification["entry_point"]
        self._connection = connection
        sys.modules["pytest"] = pytest_stand_in.module()
        self._sources: dict[str, str] = {
            "preamble": specification["preamble"],
            "setup": specification["setup"],
            **{f"test {number}": source for number, source in enumerate(specification["sources"])},
        }
        self._trees = {title: ast.parse(source) for title, source in self._sources.items()}
        self._names_read = names_of(ast.Module([node for tree in self._trees.values() for node in tree.body], []))

    def problem(self) -> str:
        """Why no answer can be tested; empty if one can."""
        read = self._names_read
        for name in sorted(read.imported - {ANSWER_MODULE, "pytest"}):
            if not is_installed(name):
                return f"the tests import {name}, which is not installed"
        if problem := read.not_supported(pytest_stand_in.NAMES):
            return problem
        return read.problem_of_classes(self._names_of_answer())

    def reports(self) -> Iterator[list[Any]]:
        """The number of tests, then the result of each, with the reason if it failed."""
        names = self._names()
        self._connection.under_test = self._classes()
        for title in ("preamble", "setup") if self._kind == "asserts" else self._trees:
            passed, reason = self._tried(self._executed, title, names)
            if not passed:
                yield ["tested", False, f"before the tests: {reason}"]
                return
            if title == "preamble":
                self._connection.classes = classes_in(names)
        tests = self._collected(names)
        yield ["collected", len(tests)]
        for name, test in tests:
            passed, reason = self._tried(test)
            yield ["tested", passed, f"{name}: {reason}" if name and reason else reason]

    def _classes(self) -> set[str]:
        """Names of the answer that the tests use as classes."""
        shared = ast.Module([node for title in ("preamble", "setup") for node in self._trees[title].body], [])
        tests = [tree for title, tree in self._trees.items() if title.startswith("test ")]
        checks = [node for tree in tests for node in tree.body if getattr(node, "name", "") == "check"]
        parameters = [node.args.args[0].arg for node in checks if isinstance(node, ast.FunctionDef) and node.args.args]
        known_as = dict.fromkeys(parameters if self._kind == "check" else [], self._entry_point)
        return classes_in_tests(shared, tests, known_as)

    def _collected(self, names: dict[str, Any]) -> list[pytest_stand_in.Test]:
        if self._kind == "asserts":
            titles = [title for title in self._trees if title.startswith("test ")]
            return [("", functools.partial(self._executed, title, names)) for title in titles]
        if self._kind == "check":
            return [("", functools.partial(names["check"], self._connection.named(self._entry_point)))]
        if not (tests := pytest_stand_in.collected(names)):
            raise NotSupportedError("a module in which no test is found")
        return tests

    def _names(self) -> dict[str, Any]:
        """Globals of the tests: names that they read and neither they nor Python define are the answer's."""
        answer = types.ModuleType(ANSWER_MODULE)
        answer.__getattr__ = self._connection.named  # type: ignore[method-assign]
        sys.modules[ANSWER_MODULE] = answer
        names: dict[str, Any] = {"__name__": TESTS_MODULE}
        return names | {name: self._connection.named(name) for name in self._names_of_answer()} | self._known

    @functools.cached_property
    def _known(self) -> dict[str, Any]:
        """Well-known names that the tests use without importing them: ``Counter``, ``inf``, ``np``, ``sys``.

        With its own object of such a name an answer could score itself. The name of the entry point is the answer's; so
        are functions if the tests would otherwise use nothing of the answer (``assert gcd(4, 6) == 2``).
        """
        read = self._names_read
        modules = {name: THIRD_PARTY.get(name, name) for name in read.modules()}
        known = {name: value for name, value in standard_names().items() if not isinstance(value, types.ModuleType)}
        known |= {name: importlib.import_module(module) for name, module in modules.items() if is_installed(module)}
        entry_point = self._entry_point.partition(".")[0].removesuffix("()")
        known = {name: known[name] for name in read.of_answer() & known.keys() - {entry_point}}
        imports_answer = ANSWER_MODULE in read.imported and "*" not in read.from_answer
        if self._kind == "check" or imports_answer or read.of_answer() - known.keys():
            return known
        return {name: value for name, value in known.items() if not (name in read.called and _is_function(value))}

    def _names_of_answer(self) -> set[str]:
        return self._names_read.of_answer() - self._known.keys()

    def _executed(self, title: str, names: dict[str, Any]) -> None:
        tree = self._trees[title]
        tree.body = [node for node in tree.body if not is_star_import(node)]
        exec(compile(tree, f"<{title}>", "exec"), names)

    def _tried(self, run: Callable[..., Any], *arguments: Any) -> tuple[bool, str]:
        self._connection.last_value = None
        try:
            run(*arguments)
        except NotSupportedError:
            raise
        except BaseException as error:  # noqa: BLE001 — a test that raises anything failed
            return False, self._reason(error)
        return True, ""

    def _reason(self, error: BaseException) -> str:
        line, trace = 0, error.__traceback__
        title = ""
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.startswith("<test "):
                title, line = trace.tb_frame.f_code.co_filename.strip("<>"), trace.tb_lineno
            trace = trace.tb_next
        where = self._sources[title].split("\n")[line - 1].strip() if title else ""
        said = f"{getattr(error, 'remote_name', type(error).__name__)}: {error}".removesuffix(": ")
        if isinstance(error, AssertionError) and not str(error) and not hasattr(error, "remote"):
            said = f"the answer returned {_shown(self._connection.last_value)}"
        return f"{where[:200]} → {said[:300]}" if where else said[:300]


def _is_function(value: Any) -> bool:
    """True if a task may ask for a function of that name; classes of ``itertools`` count as functions."""
    return isinstance(value, types.FunctionType | types.BuiltinFunctionType) or value in vars(itertools).values()


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 — an object of the answer writes itself; or more digits than Python writes
        text = f"a {type(value).__name__} that cannot be written"
    return text if len(text) <= 120 else text[:120] + "…"

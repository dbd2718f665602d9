"""Parts by name, of every kind: built-in, or as ``package.module:attribute``.

One registry serves verifiers, generators of rows and the trainer's strategies. Names, signatures and options are
checked when a part is built, long before a model is loaded.
"""

import inspect
import pkgutil
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evenkeel.errors import Refusal, suggest

PartSpec = str | Callable[..., Any] | Mapping[str, Any]
"""A part as a user writes it: a name, ``package.module:attribute``, ``{name: …, option: …}``, or an object."""

ORIGINS: dict[int, tuple[Any, tuple[Callable[..., Any], tuple[Any, ...]]]] = {}
"""``id`` of a part that was imported by its path, or built from one → the part, and a function with its arguments that
makes the part again, in this or another process."""


class PartError(Refusal):
    """A part that cannot be found, built or used; the message says what to write instead."""


class CodeNotRunError(PartError):
    """A part whose module is not imported, because `without_own_code` says so."""


_imports = ContextVar("imports", default=True)


@contextmanager
def without_own_code() -> Iterator[None]:
    """Inside, `Kind.find` imports no module: a part that does not ship raises `CodeNotRunError`."""
    before = _imports.set(False)
    try:
        yield
    finally:
        _imports.reset(before)


@dataclass(frozen=True)
class Found:
    """The part that a specification names, before its options are checked."""

    label: str
    target: Any
    options: dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of part, and where its parts are found.

    Attributes:
        name: as users know it, e.g. ``advantage``.
        built_in: returns name → part; called when a name is looked up.
    """

    name: str
    built_in: Callable[[], Mapping[str, Any]]

    def find(self, spec: Any) -> Found:
        """The part that ``spec`` names, with its options.

        Raises:
            PartError: no name, an unknown name (with the nearest), or a failing import.
        """
        options = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
        named = options.pop("name", None)
        if isinstance(named, str):
            return Found(named, self._named(named), options)
        if callable(named):
            return Found(getattr(named, "__name__", type(named).__name__), named, options)
        what = (
            f"{self.name}: {spec!r:.80} has no name. Write a name, package.module:attribute or {{name: …, option: …}}."
        )
        raise PartError(what, code="part-without-name")

    def _named(self, name: str) -> Any:
        if ":" in name:
            return self._imported(name)
        parts = self.built_in()
        if name not in parts:
            hint = suggest(name, parts, f"Names: {', '.join(sorted(parts))}.")
            what = f"There is no {self.name} {name!r}. {hint} Your own: module:attribute."
            raise PartError(what, code="unknown-name")
        return parts[name]

    def _imported(self, path: str) -> Any:
        if not _imports.get():
            raise CodeNotRunError(f"{self.name} {path!r} is code, which is not run, so nothing is checked of it.")
        self._check_owner(path, path)
        try:
            found = pkgutil.resolve_name(path)
        except Exception as error:  # the user's module may raise anything while it is imported
            what = f"{self.name} {path!r} cannot be imported: {type(error).__name__}: {error}."
            raise PartError(f"{what} Write package.module:attribute.", code="failed-import") from error
        if callable(found):
            self._check_owner(path, _module_of(found))
            ORIGINS[id(found)] = found, (pkgutil.resolve_name, (path,))
        return found

    def _check_owner(self, path: str, module: str) -> None:
        """Refuse modules of the standard library, before they are imported and before they are called."""
        if is_of_python(module):
            what = f"{self.name} {path!r} is of Python's standard library, which is not called. Name one of your own."
            raise PartError(what, code="standard-library")

    def check_returned(self, found: Found, called: Any, accepts: Callable[[Any], bool], example: str) -> None:
        """Refuse a ``module:attribute`` whose return annotation is not that of this kind, before it is called.

        Args:
            called: the function whose annotations are read.
            accepts: whether a return annotation is that of this kind.
            example: how such a function is written.
        """
        if ":" not in found.label:
            return
        if inspect.isfunction(called) and accepts(self._hints(found.label, called).get("return")):
            return
        what = f"{self.name} {found.label!r} is not annotated with its result. Write {example}."
        raise PartError(what, code="wrong-signature")

    def checked_options(
        self,
        found: Found,
        parameters: Iterable[inspect.Parameter],
        hints_of: Callable[..., Any],
        build: Mapping[Any, Callable[[Any], Any]] | None = None,
    ) -> dict[str, Any]:
        """The options of ``found`` as its ``parameters`` declare them; an integer where a float is meant becomes one.

        Args:
            hints_of: the function or class whose annotations give the types.
            build: annotation → builder of such an option from the user's value (a part inside a part).

        Raises:
            PartError: an option that is unknown (with the nearest), missing or not of its type.
        """
        accepted = {parameter.name: parameter for parameter in parameters}
        self._check_named(found, accepted)
        hints = self._hints(found.label, hints_of) if found.options else {}
        return {
            name: self._option(found.label, name, value, hints, build or {}) for name, value in found.options.items()
        }

    def _check_named(self, found: Found, accepted: Mapping[str, inspect.Parameter]) -> None:
        for name in found.options:
            if name not in accepted:
                hint = suggest(str(name), accepted, f"Its options: {', '.join(accepted) or 'none'}.")
                raise PartError(f"{self.name} {found.label!r} has no option {name!r}. {hint}", code="unknown-option")
        missing = [name for name, p in accepted.items() if p.default is p.empty and name not in found.options]
        if missing:
            what = f"{self.name} {found.label!r} needs {', '.join(missing)}."
            example = ", ".join(f"{name}: …" for name in (*found.options, *missing))
            raise PartError(f"{what} Write {{name: {found.label}, {example}}}.", code="missing-option")

    def _hints(self, label: str, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return typing.get_type_hints(function, include_extras=True)
        except NameError as error:
            what = f"{self.name} {label!r}: {error} in its annotations. Import it outside of TYPE_CHECKING."
            raise PartError(what, code="unresolved-annotation") from error

    def _option(
        self, label: str, name: str, value: Any, hints: Mapping[str, Any], build: Mapping[Any, Callable[[Any], Any]]
    ) -> Any:
        if name not in hints:
            return value
        if hints[name] in build:
            return build[hints[name]](value)
        try:
            return TypeAdapter(hints[name]).validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            what = f"{self.name} {label!r}: option {name} = {value!r} is not accepted: {problem}."
            raise PartError(what, code="option-not-accepted") from error


def is_of_python(name: str) -> bool:
    """True for a module, or ``module:attribute``, of Python's standard library."""
    return re.split("[.:]", name)[0] in sys.stdlib_module_names


def _module_of(target: Any) -> str:
    """The module of a callable; for a partial that of its function, for a method of a C function ``builtins``."""
    while isinstance(target, partial):
        target = target.func
    return getattr(target, "__module__", None) or type(target).__module__

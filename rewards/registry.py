"""Parts by name, of every kind: built-in, from an installed package's entry point, or as ``package.module:attribute``.

One registry serves verifiers, generators of rows and the trainer's strategies. Names, signatures and options are
checked when a part is built, long before a model is loaded.
"""

import inspect
import math
import pkgutil
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from evenkeel.errors import Refusal, suggest

PartSpec = str | Callable[..., Any] | Mapping[str, Any]
"""A part as a user writes it: a name, ``package.module:attribute``, ``{name: …, option: …}``, or an object."""


ORIGINS: dict[int, tuple[Any, tuple[Callable[..., Any], tuple[Any, ...]]]] = {}
"""By ``id``, each part that was imported by its path, or built of one: the part, and a function with arguments that
makes it once more, in another process too."""


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
    """What a specification names, before its options are checked."""

    label: str
    target: Any
    options: dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of part, and where its parts are found.

    Attributes:
        name: as users know it, e.g. ``advantage``.
        group: entry-point group in which other packages offer parts.
        built_in: returns name → part; called when a name is looked up.
        error: what is raised.
    """

    name: str
    group: str
    built_in: Callable[[], Mapping[str, Any]]
    error: type[Refusal] = PartError

    def find(self, spec: Any) -> Found:
        """What ``spec`` names, with its options.

        Raises:
            PartError: no name, an unknown name (with the nearest), a name offered twice, or a failing import.
        """
        options: dict[str, Any] = {}
        if isinstance(spec, Mapping):
            options = dict(spec)
            if "name" not in options:
                raise self.error(
                    f"{self.name}: {options} has no name, so no part is chosen. Write {{name: …, option: …}}.",
                    code="part-without-name",
                )
            spec = options.pop("name")
        if isinstance(spec, str):
            return Found(spec, self._named(spec), options)
        if callable(spec):
            return Found(getattr(spec, "__name__", type(spec).__name__), spec, options)
        raise self.error(
            f"{self.name}: {spec!r:.80} is of type {type(spec).__name__}, so it names none. "
            "Write a name, package.module:attribute or {name: …, option: …}.",
            code="part-without-name",
        )

    def names(self) -> list[str]:
        """All names that can be written without a module."""
        return sorted({*self.built_in(), *(point.name for point in _offered(self.group))})

    def _named(self, name: str) -> Any:
        if ":" in name or _is_file(name):
            return self._imported(name)
        built_in = self.built_in()
        offered = [point for point in _offered(self.group) if point.name == name]
        if len(offered) + (name in built_in) > 1:
            sources = [*map(_origin, offered), *["evenkeel itself"] * (name in built_in)]
            raise self.error(
                f"{self.name} {name!r} is offered more than once, by {' and '.join(sources)}, so the name does not say "
                "which is meant. Write one of them as package.module:attribute.",
                code="name-offered-twice",
            )
        if offered:
            return self._imported(offered[0].value)
        if name not in built_in:
            names = self.names()
            listed = f"{suggest(name, names)} Names: {', '.join(names)}; one of your own is package.module:attribute."
            raise self.error(f"{self.name} {name!r} is not known. {listed.lstrip()}", code="unknown-name")
        return built_in[name]

    def _imported(self, path: str) -> Any:
        if _is_file(path):
            module, _, attribute = path.partition(":")
            name = f"{Path(module.replace(chr(92), '/')).name.removesuffix('.py')}:{attribute or '…'}"
            folder = Path(module).parent
            raise self.error(
                f"{self.name} {path!r} is a path, and a part is named by its module: package.module:attribute. Write "
                f"{name}, and start with PYTHONPATH={folder}.",
                code="part-in-a-file",
            )
        if not _imports.get():
            raise CodeNotRunError(f"{self.name} {path!r} is code, which is not run, so nothing is checked of it.")
        self._check_owner(path, path)
        try:
            found = pkgutil.resolve_name(path)
        except Exception as error:  # the user's module may raise anything while it is imported
            raise self.error(
                f"{self.name} {path!r} cannot be imported: {type(error).__name__}: {error}. "
                "Write module:attribute, with the module installed, in the current folder or in one of PYTHONPATH.",
                code="failed-import",
            ) from error
        if callable(found):
            self._check_owner(path, _module_of(found))
            ORIGINS[id(found)] = found, (pkgutil.resolve_name, (path,))
        return found

    def _check_owner(self, path: str, module: str) -> None:
        """Refuse what Python itself brings, before it is imported and before it is called."""
        if is_of_python(module):
            raise self.error(
                f"{self.name} {path!r} belongs to Python's standard library, which holds no part: it is not called. "
                "Write a function or class of your own, as package.module:attribute.",
                code="standard-library",
            )

    def check_returned(self, found: Found, called: Any, accepts: Callable[[Any], bool], example: str) -> None:
        """Refuse a ``module:attribute`` that is not a function of this kind, which its annotation tells before a call.

        Args:
            called: the function whose annotations are read.
            accepts: whether a return annotation is that of this kind.
            example: how such a function is written.
        """
        if ":" not in found.label:
            return
        if inspect.isfunction(called) and accepts(self._hints(found.label, called).get("return")):
            return
        raise self.error(
            f"{self.name} {found.label!r} does not say that it returns what one has to, so it is not called. "
            f"Write {example}.",
            code="wrong-signature",
        )

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
            build: annotation → how an option of that type is made of what a user writes (a part inside a part).

        Raises:
            PartError: an option that is unknown (with the nearest), missing, ill-typed or no finite number.
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
                listed = f"{suggest(name, accepted)} Its options: {', '.join(accepted) or 'none'}."
                what = f"{self.name} {found.label!r} has no option {name!r}. {listed.lstrip()}"
                raise self.error(what, code="unknown-option")
        missing = [name for name, p in accepted.items() if p.default is p.empty and name not in found.options]
        if missing:
            given = [f"{name}: {value!r}" for name, value in found.options.items()]
            example = ", ".join([*given, *(f"{name}: …" for name in missing)])
            raise self.error(
                f"{self.name} {found.label!r} needs {', '.join(missing)}. Write {{name: {found.label}, {example}}}.",
                code="missing-option",
            )

    def _hints(self, label: str, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return typing.get_type_hints(function, include_extras=True)
        except NameError as error:
            raise self.error(
                f"{self.name} {label!r}: {error} in its annotations, so its options cannot be checked. "
                "Import that name when the module is imported, not under TYPE_CHECKING alone.",
                code="unresolved-annotation",
            ) from error

    def _option(
        self, label: str, name: str, value: Any, hints: Mapping[str, Any], build: Mapping[Any, Callable[[Any], Any]]
    ) -> Any:
        if fault := _not_finite(value, name):
            raise self.error(
                f"{self.name} {label!r}: option {fault} is not a finite number. "
                "Write one, or leave the option out where it has a default.",
                code="finite-number",
            )
        if name not in hints:
            return value
        if hints[name] in build:
            return build[hints[name]](value)
        try:
            return TypeAdapter(hints[name]).validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            what = f"{self.name} {label!r}: option {name} = {value!r} is not accepted: {problem}."
            raise self.error(what, code="option-not-accepted") from error


def _is_file(name: str) -> bool:
    module = name.partition(":")[0]
    return "/" in name or "\\" in name or module.endswith(".py")


def is_of_python(name: str) -> bool:
    """Whether a module, or ``module:attribute``, is of Python's standard library."""
    return re.split("[.:]", name)[0] in sys.stdlib_module_names


def _module_of(target: Any) -> str:
    """The module that a callable was written in; of a partial its function's; of a C function's method ``builtins``."""
    while isinstance(target, partial):
        target = target.func
    return getattr(target, "__module__", None) or type(target).__module__


def _offered(group: str) -> EntryPoints:
    """What installed packages offer in ``group``."""
    return _read(group, tuple(sys.path))


@lru_cache(maxsize=64)  # every installed package is opened: 20 ms and more, and a sweep looks up hundreds of parts
def _read(group: str, _folders: tuple[str, ...]) -> EntryPoints:
    return entry_points(group=group)


def _origin(point: EntryPoint) -> str:
    return f"{point.value} ({point.dist.name if point.dist else '?'})"


def _not_finite(value: Any, path: str) -> str:
    """``path = value`` of the first infinite or undefined number in ``value``; empty where there is none."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{path} = {value}"
    if isinstance(value, Mapping):
        inside = ((item, f"{path}.{key}") for key, item in value.items())
    elif isinstance(value, list | tuple):
        inside = ((item, f"{path}[{index}]") for index, item in enumerate(value))
    else:
        return ""
    return next((fault for item, where in inside if (fault := _not_finite(item, where))), "")

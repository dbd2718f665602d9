"""Parts by name: built-in, from an installed package's entry point, or as ``package.module:attribute``.

A part is a function. Its signature is its interface: the arguments of its kind's contract come first, arguments with
the names of what the trainer can provide (`Kind.inputs`) are filled in by the trainer, every other keyword is an option
of the user. All of it, and the values that the part returns on a tiny example, is checked when the part is built, long
before a model is loaded.
"""

import inspect
import pkgutil
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Any

from pydantic import TypeAdapter, ValidationError

PartSpec = str | Callable[..., Any] | Mapping[str, Any]
"""A part as a user writes it: a name, ``package.module:attribute``, ``{name: …, option: …}``, or a function."""


class PartError(ValueError):
    """A part that cannot be found, built or used; the message says what to write instead."""


@dataclass(frozen=True)
class Part:
    """A function of one kind with its options bound; call it with the contract's arguments and its `inputs` by name."""

    kind: str
    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any]
    inputs: frozenset[str]

    def __call__(self, *arguments: Any, **inputs: Any) -> Any:
        wanted = {key: value for key, value in inputs.items() if key in self.inputs}
        return self.function(*arguments, **wanted, **self.options)


@dataclass(frozen=True)
class Kind:
    """One kind of part: its contract, where its parts are found, and how one is tried out.

    Attributes:
        name: as users know it, e.g. ``advantage``.
        group: entry-point group in which other packages offer parts.
        arguments: names that a part's signature must begin with.
        inputs: names that a part may ask the trainer for.
        builtin: name → function.
        probe: called with a built part; raises `PartError` where the part breaks the contract.
    """

    name: str
    group: str
    arguments: tuple[str, ...]
    inputs: frozenset[str]
    builtin: Mapping[str, Callable[..., Any]]
    probe: Callable[[Part], None] = field(default=lambda part: None)

    def build(self, spec: PartSpec) -> Part:
        """The part that ``spec`` names, its options checked against its signature and its results against the contract.

        Raises:
            PartError: unknown name (with the nearest), failing import, wrong signature, unknown or missing or
                ill-typed option, or a result that breaks the contract.
        """
        spec, options = _split(self.name, spec)
        label, function = self._find(spec)
        inputs = _check_signature(self, label, function, options)
        options = {name: _option(self.name, label, function, name, value) for name, value in options.items()}
        part = Part(self.name, label, function, options, inputs)
        self.probe(part)
        return part

    def names(self) -> list[str]:
        """All names that can be written without a module."""
        return sorted({*self.builtin, *(point.name for point in entry_points(group=self.group))})

    def _find(self, spec: str | Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
        if callable(spec):
            return getattr(spec, "__name__", type(spec).__name__), spec
        if not isinstance(spec, str):
            raise PartError(
                f"{self.name}: {spec!r} is a {type(spec).__name__}, so it names no part. "
                "Write a name, package.module:attribute or {name: …, option: …}."
            )
        if ":" in spec:
            return spec, _import(self.name, spec)
        offered = [point for point in entry_points(group=self.group) if point.name == spec]
        if len(offered) + (spec in self.builtin) > 1:
            sources = [f"{point.value} ({point.dist.name if point.dist else '?'})" for point in offered]
            sources += ["evenkeel itself"] * (spec in self.builtin)
            raise PartError(
                f"{self.name} {spec!r} is offered more than once, by {' and '.join(sources)}, so the name does not say "
                f"which is meant. Write one of them as package.module:attribute."
            )
        if offered:
            return spec, _import(self.name, offered[0].value)
        if spec in self.builtin:
            return spec, self.builtin[spec]
        nearest = get_close_matches(spec, self.names(), n=1)
        hint = f"Did you mean {nearest[0]!r}? " if nearest else ""
        raise PartError(
            f"{self.name} {spec!r} is not known. {hint}Names: {', '.join(self.names())}; "
            "a function of your own is written package.module:attribute."
        )


def _split(kind: str, spec: PartSpec) -> tuple[str | Callable[..., Any], dict[str, Any]]:
    if not isinstance(spec, Mapping):
        return spec, {}
    options = dict(spec)
    if "name" not in options:
        raise PartError(f"{kind}: {dict(spec)} has no name, so no part is chosen. Write {{name: …, option: …}}.")
    return options.pop("name"), options


def _import(kind: str, path: str) -> Callable[..., Any]:
    try:
        function = pkgutil.resolve_name(path)
    except Exception as error:  # the user's module may raise anything while it is imported
        raise PartError(
            f"{kind} {path!r} cannot be imported: {type(error).__name__}: {error}. "
            "Write package.module:attribute, with the package installed or its folder on PYTHONPATH."
        ) from error
    if not callable(function):
        raise PartError(f"{kind} {path!r} is a {type(function).__name__}, not a function, so it cannot be called.")
    return typing.cast(Callable[..., Any], function)


def _check_signature(
    kind: Kind, label: str, function: Callable[..., Any], options: Mapping[str, Any]
) -> frozenset[str]:
    """The names in ``function``'s signature that the trainer fills in; refuses what cannot be called as promised."""
    parameters = list(inspect.signature(function).parameters.values())
    leading = tuple(parameter.name for parameter in parameters[: len(kind.arguments)])
    if leading != kind.arguments:
        raise PartError(
            f"{kind.name} {label!r} begins with ({', '.join(leading)}), but it is called with "
            f"({', '.join(kind.arguments)}). Write def {label.split(':')[-1]}({', '.join(kind.arguments)}, *, …)."
        )
    rest = {parameter.name: parameter for parameter in parameters[len(kind.arguments) :]}
    starred = [p.name for p in rest.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if starred:
        raise PartError(
            f"{kind.name} {label!r} takes *{starred[0]}, so neither its inputs nor its options can be checked. "
            f"Name each argument. The trainer provides: {', '.join(sorted(kind.inputs)) or 'nothing more'}."
        )
    inputs = frozenset(rest) & kind.inputs
    accepted = {name: parameter for name, parameter in rest.items() if name not in inputs}
    for name in options:
        if name not in accepted:
            nearest = get_close_matches(name, accepted, n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
            raise PartError(
                f"{kind.name} {label!r} has no option {name!r}.{hint} Its options: {', '.join(accepted) or 'none'}."
            )
    missing = [name for name, p in accepted.items() if p.default is p.empty and name not in options]
    if missing:
        raise PartError(
            f"{kind.name} {label!r} needs {', '.join(missing)}, which the trainer does not provide (it provides "
            f"{', '.join(sorted(kind.inputs)) or 'nothing more'}). "
            f"Write {{name: {label}, {', '.join(f'{name}: …' for name in missing)}}}."
        )
    return inputs


def _option(kind: str, label: str, function: Callable[..., Any], name: str, value: Any) -> Any:
    """``value`` as the annotation of ``name`` has it: an integer where a float is meant becomes one."""
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise PartError(
            f"{kind} {label!r}: {error} in its annotations, so option {name} cannot be checked. "
            "Import that name when the module is imported, not under TYPE_CHECKING alone."
        ) from error
    if name not in hints:
        return value
    try:
        return TypeAdapter(hints[name]).validate_python(value, strict=True)
    except ValidationError as error:
        raise PartError(
            f"{kind} {label!r}: option {name} = {value!r} is not accepted: {error.errors()[0]['msg']}."
        ) from error

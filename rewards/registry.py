"""Verifiers by name: built-in, from an installed package's entry point, or as ``package.module:attribute``."""

import inspect
import math
import pkgutil
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from rewards.verifier import Verdict, Verifier
from rewards.verifiers.code_tests import CodeTests
from rewards.verifiers.countdown import Countdown
from rewards.verifiers.exact_match import ExactMatch
from rewards.verifiers.formatting import CosineLength, Format, RepetitionPenalty, SoftOverlong
from rewards.verifiers.knights_knaves import KnightsKnaves
from rewards.verifiers.math_answer import MathAnswer
from rewards.verifiers.multiple_choice import MultipleChoice
from rewards.verifiers.reasoning_gym import ReasoningGym

ENTRY_POINT_GROUP = "evenkeel.verifiers"
VERIFIERS: dict[str, Callable[..., Verifier]] = {
    "knights_knaves": KnightsKnaves,
    "countdown": Countdown,
    "code_tests": CodeTests,
    "exact_match": ExactMatch,
    "multiple_choice": MultipleChoice,
    "reasoning_gym": ReasoningGym,
    "math_answer": MathAnswer,
    "format": Format,
    "soft_overlong": SoftOverlong,
    "cosine_length": CosineLength,
    "repetition_penalty": RepetitionPenalty,
}


class VerifierError(ValueError):
    """A verifier that cannot be found or built; the message says what to write instead."""


class FunctionVerifier(Verifier):
    """A verifier made of a plain function ``(completion, reference) → Verdict``; 1 is its full score."""

    def __init__(self, function: Callable[..., Verdict]) -> None:
        self.function = function

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Judge ``completion`` by the function."""
        return self.function(completion, reference)


def build_verifier(spec: str | Mapping[str, Any] | Callable[..., Any]) -> Verifier:
    """The verifier that ``spec`` names: a name, ``package.module:attribute``, ``{name: …, option: …}``, or a function.

    What is named is a `Verifier` class, whose constructor takes the options, a function
    ``(completion, reference, *, option…) → Verdict``, or a `Verifier` that is built already and takes none.

    Raises:
        VerifierError: unknown name (with the nearest), failing import; unknown, missing, ill-typed, infinite options.
    """
    options: dict[str, Any] = {}
    if isinstance(spec, Mapping):
        options = dict(spec)
        if "name" not in options:
            raise VerifierError(f"{options} has no name, so no verifier is chosen. Write {{name: …, option: …}}.")
        spec = options.pop("name")
    label = spec if isinstance(spec, str) else getattr(spec, "__name__", type(spec).__name__)
    found = _find(spec) if isinstance(spec, str) else spec
    if not callable(found):
        raise VerifierError(
            f"verifier {spec!r:.80} is of type {type(found).__name__}, neither a Verifier class nor a function. "
            "Write a verifier's name, or package.module:attribute."
        )
    if isinstance(found, Verifier):
        if options:
            raise VerifierError(
                f"verifier {label!r} is built already, so its options {', '.join(options)} would change nothing. "
                f"Name its class, {type(found).__module__}:{type(found).__qualname__}, or leave the options out."
            )
        return found
    if isinstance(found, type) and not issubclass(found, Verifier):
        raise VerifierError(f"verifier {label!r} is no subclass of rewards.verifier.Verifier. Derive it from that.")
    _check_options(label, found, options)
    if not isinstance(found, type):
        return FunctionVerifier(partial(found, **options) if options else found)
    try:
        verifier: Verifier = found(**options)
    except ValueError as error:
        raise VerifierError(f"verifier {label!r}: {error}") from error
    return verifier


def _find(spec: str) -> Any:
    offered = {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}
    if spec in VERIFIERS and spec in offered:
        raise VerifierError(
            f"verifier {spec!r} is offered by evenkeel and as {offered[spec]}, so the name does not say which is "
            "meant. Write package.module:attribute."
        )
    if spec in VERIFIERS:
        return VERIFIERS[spec]
    path = offered.get(spec, spec)
    if ":" not in path:
        names = sorted({*VERIFIERS, *offered})
        nearest = get_close_matches(spec, names, n=1)
        hint = f"Did you mean {nearest[0]!r}? " if nearest else ""
        raise VerifierError(
            f"verifier {spec!r} is not known. {hint}Names: {', '.join(names)}; "
            "one of your own is written package.module:attribute."
        )
    try:
        return pkgutil.resolve_name(path)
    except Exception as error:  # the user's module may raise anything while it is imported
        raise VerifierError(
            f"verifier {path!r} cannot be imported: {type(error).__name__}: {error}. "
            "Write package.module:attribute, with the package installed or its folder on PYTHONPATH."
        ) from error


def _check_options(label: str, found: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that the class or function does not name, misses, or declares with another type."""
    parameters = inspect.signature(found).parameters
    if not isinstance(found, type):
        if list(parameters)[:2] != ["completion", "reference"]:
            raise VerifierError(
                f"verifier {label!r} begins with ({', '.join(list(parameters)[:2])}), but it is called with "
                "(completion, reference). Write def verifier(completion, reference, *, …)."
            )
        parameters = MappingProxyType({name: parameters[name] for name in list(parameters)[2:]})
    hints = get_type_hints(found)  # of a dataclass its fields, which are the arguments of its constructor
    for name, value in options.items():
        if name not in parameters:
            nearest = get_close_matches(name, parameters, n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
            names = ", ".join(parameters) or "none"
            raise VerifierError(f"verifier {label!r} has no option {name!r}.{hint} Its options: {names}.")
        try:
            TypeAdapter(hints.get(name, Any)).validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise VerifierError(f"verifier {label!r}: option {name} = {value!r} is not accepted: {problem}.") from error
        if fault := _not_finite(value, name):
            raise VerifierError(
                f"verifier {label!r}: option {fault} is no number to count or compare with. "
                "Write a finite one, or leave the option out where it has a default."
            )
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in options]
    if missing:
        given = [f"{name}: {value!r}" for name, value in options.items()]
        example = ", ".join([*given, *(f"{name}: …" for name in missing)])
        raise VerifierError(f"verifier {label!r} needs {', '.join(missing)}. Write {{name: {label}, {example}}}.")


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

"""Verifiers and generators of rows by name: the tables of those that ship, and how a verifier is built."""

import inspect
import typing
from collections.abc import Callable
from functools import partial
from typing import Any

from evenkeel.rewards.generators import rows
from evenkeel.rewards.registry import ORIGINS, Found, Kind, PartError, PartSpec
from evenkeel.rewards.user_verifiers.trl_function import BATCH, HOOKS, TRLFunction
from evenkeel.rewards.user_verifiers.verifier import is_users
from evenkeel.rewards.verifier import Verdict, Verifier, as_verdict
from evenkeel.rewards.verifiers.code_tests.verifier import CodeTests
from evenkeel.rewards.verifiers.countdown import Countdown
from evenkeel.rewards.verifiers.environment import EnvironmentReward
from evenkeel.rewards.verifiers.exact_match import ExactMatch
from evenkeel.rewards.verifiers.formatting import CosineLength, Format, RepetitionPenalty, SoftOverlong
from evenkeel.rewards.verifiers.knights_knaves.verifier import KnightsKnaves
from evenkeel.rewards.verifiers.math_answer import MathAnswer
from evenkeel.rewards.verifiers.math_verify import MathVerify
from evenkeel.rewards.verifiers.multiple_choice import MultipleChoice
from evenkeel.rewards.verifiers.reasoning_gym.entries import reasoning_gym_rows
from evenkeel.rewards.verifiers.reasoning_gym.verifier import ReasoningGym

VERIFIERS: dict[str, Callable[..., Verifier]] = {
    "knights_knaves": KnightsKnaves,
    "countdown": Countdown,
    "code_tests": CodeTests,
    "exact_match": ExactMatch,
    "multiple_choice": MultipleChoice,
    "reasoning_gym": ReasoningGym,
    "math_answer": MathAnswer,
    "math_verify": MathVerify,
    "format": Format,
    "soft_overlong": SoftOverlong,
    "cosine_length": CosineLength,
    "repetition_penalty": RepetitionPenalty,
    "environment": EnvironmentReward,
}
GENERATORS: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "knights_knaves": rows.knights_knaves,
    "countdown": rows.countdown,
    "reasoning_gym": reasoning_gym_rows,
    "arithmetic": rows.arithmetic,
    "small_programs": rows.small_programs,
    "guessing": rows.guessing,
    "key_door": rows.key_door,
}
"""Name in ``data.<part>.generator`` → generator of rows."""
VERIFIER_KIND = Kind("verifier", lambda: VERIFIERS)


class FunctionVerifier(Verifier):
    """A function ``(completion, reference) → Verdict``, or a bare score, as a verifier with the full score 1."""

    def __init__(self, function: Callable[..., Verdict]) -> None:
        self.function = function

    def __call__(self, completion: str, reference: Any) -> Verdict:
        """Score ``completion`` by the function."""
        return as_verdict(self.function(completion, reference))


def build_verifier(spec: PartSpec) -> Verifier:
    """The verifier that ``spec`` names: a name, ``package.module:attribute``, ``{name: …, option: …}``, or a function.

    ``spec`` names a `Verifier` class, whose constructor takes the options, a function
    ``(completion, reference, *, option…) → Verdict``, or a `Verifier` object, which takes no options. An option that is
    itself a `Verifier` is written like one and built first. A function that takes ``completions`` becomes a
    `TRLFunction`, whose options are its named arguments; one that returns a ``Callable`` makes such a function.

    Raises:
        PartError: unknown name (with the nearest), failing import; unknown, missing or ill-typed options.
    """
    found = VERIFIER_KIND.find(spec)
    target = found.target
    if isinstance(target, Verifier):
        VERIFIER_KIND.checked_options(found, (), type(target))  # it has them already
        return target
    if not callable(target) or (isinstance(target, type) and not issubclass(target, Verifier)):
        what = f"verifier {found.label!r} is neither a subclass of evenkeel.rewards.Verifier nor a function."
        raise PartError(what, code="not-a-verifier")
    if not isinstance(target, type):
        return _of_function(found)
    parameters = inspect.signature(target).parameters.values()
    options = VERIFIER_KIND.checked_options(found, parameters, target, {Verifier: build_verifier})
    try:
        built: Verifier = target(**options)
    except ValueError as error:
        raise PartError(f"verifier {found.label!r}: {error}", code="option-not-accepted") from error
    except Exception as error:
        if not is_users(target):
            raise
        what = f"verifier {found.label!r} cannot be made: {type(error).__name__}: {error}"
        raise PartError(what, code="failed-constructor") from error
    if is_users(target):
        ORIGINS[id(built)] = built, (partial(target, **options), ())
    return built


def _of_function(found: Found) -> Verifier:
    try:
        parameters = list(inspect.signature(found.target).parameters.values())
    except (TypeError, ValueError):  # of C
        parameters = []
    if [each.name for each in parameters[:2]] == ["completion", "reference"]:
        return FunctionVerifier(_with_options(found, parameters[2:]))
    if {each.name for each in parameters} & {*BATCH}:
        others = [
            each for each in parameters if each.name not in (*BATCH, *HOOKS) and each.kind is not each.VAR_KEYWORD
        ]
        return TRLFunction(_with_options(found, [each.replace(default=None) for each in others]))  # or they are columns
    returned = (
        VERIFIER_KIND._hints(found.label, found.target).get("return") if inspect.isfunction(found.target) else None
    )
    if (typing.get_origin(returned) or returned) is not Callable:
        what = (
            f"verifier {found.label!r} is not called with (completion, reference), nor with (completions, **columns)."
        )
        raise PartError(f"{what} Write def verifier(completion, reference, *, …).", code="wrong-signature")
    make = _with_options(found, parameters)
    try:
        made = make()
    except Exception as error:
        what = f"verifier {found.label!r} cannot be made: {type(error).__name__}: {error}"
        raise PartError(what, code="failed-constructor") from error
    ORIGINS[id(made)] = made, (make, ())
    return _of_function(Found(found.label, made, {}))


def _with_options(found: Found, parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    hints_of = found.target if inspect.isfunction(found.target) else type(found.target).__call__
    options = VERIFIER_KIND.checked_options(found, parameters, hints_of)
    return partial(found.target, **options) if options else found.target

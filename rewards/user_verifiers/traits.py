"""Declarations of a user's verifier: its time limit, and whether it reads the reference."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from evenkeel.errors import Refusal

Declared = TypeVar("Declared", bound=Callable[..., Any])


def traits(*, timeout_s: float = 60.0, reads_reference: bool = True) -> Callable[[Declared], Declared]:
    """Declare what a verifier is, above its function or class.

    ::

        @traits(timeout_s=10)
        def score(completion, reference): ...

    The limit holds if the verifier has a process of its own (`evenkeel.rewards.user_verifiers.UserVerifier`).

    Args:
        timeout_s: wall time for one batch; rows that have no verdict by then are unscored.
        reads_reference: false for a verifier of the form alone, which may pay any text.
    """

    def declared(verifier: Any) -> Any:
        verifier.timeout_s, verifier.reads_reference = timeout_s, reads_reference
        return verifier

    return declared


def timeout_of(verifier: Any) -> float:
    """The time limit that a verifier, or the function that it wraps, declares; a `Refusal` if it is no number."""
    seconds = getattr(written(verifier), "timeout_s", 60.0)
    if not isinstance(seconds, int | float) or not seconds > 0:
        raise Refusal(f"verifier {name_of(verifier)}: timeout_s = {seconds!r} is no time. Write seconds.")
    return seconds


def name_of(verifier: Any) -> str:
    """``module:name`` of the class or function that the user wrote."""
    part = written(verifier)
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}:{named.__qualname__}"


def written(verifier: Any) -> Any:
    """The user's object, without `functools.partial` and the wrappers of this package around it."""
    while True:
        if isinstance(verifier, functools.partial):
            verifier = verifier.func
        elif type(verifier).__module__.startswith("evenkeel.rewards.") and hasattr(verifier, "function"):
            verifier = verifier.function
        else:
            return verifier

"""Declarations of a user's verifier: its time limit, and whether it reads the reference."""

import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, TypeVar

Declared = TypeVar("Declared", bound=Callable[..., Any])


@dataclass(frozen=True)
class Traits:
    """Declarations of a verifier, as a decorator of its function or class.

    ::

        @traits(timeout_s=10)
        def score(completion, reference): ...

    The limit holds if the verifier has a process of its own (`evenkeel.rewards.user_verifiers.UserVerifier`).

    Attributes:
        timeout_s: wall time for one batch; rows that have no verdict by then are unscored.
        reads_reference: false for a verifier of the form alone, which may pay any text.
    """

    _: KW_ONLY
    timeout_s: float = 60.0
    reads_reference: bool = True

    def __call__(self, verifier: Declared) -> Declared:
        for name, value in vars(self).items():
            setattr(verifier, name, value)
        return verifier


traits = Traits


def traits_of(verifier: Any) -> Traits:
    """The traits of a verifier, or of the function that it wraps."""
    part = written(verifier)
    names = [each.name for each in fields(Traits)]
    return Traits(**{name: getattr(part, name) for name in names if hasattr(part, name)})


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

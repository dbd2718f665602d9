"""What a user declares of a verifier: how long it may take, how much memory, whether it reads the reference."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

TIMEOUT_SECONDS = 60.0
MEMORY_MB = 4096

Declared = TypeVar("Declared", bound=Callable[..., Any])


@dataclass(frozen=True)
class Traits:
    """What was declared.

    Attributes:
        timeout_s: wall time for one batch.
        memory_mb: what its process may take, beyond what it holds when the verifier is there.
        reads_reference: it compares with the reference; one that judges the form alone may well pay any text.
    """

    timeout_s: float = TIMEOUT_SECONDS
    reads_reference: bool = True
    memory_mb: int = MEMORY_MB

    def __post_init__(self) -> None:
        if isinstance(self.memory_mb, bool) or not isinstance(self.memory_mb, int) or self.memory_mb < 1:
            raise ValueError(
                f"memory_mb = {self.memory_mb!r}: no verifier judges without memory, and one without a limit can take "
                "the machine's; write the whole megabytes that it may take for its rows, such as 4096"
            )
        if isinstance(self.timeout_s, bool) or not (0 < self.timeout_s < math.inf):
            raise ValueError(
                f"timeout_s = {self.timeout_s!r}: a verifier that never answers would hold up the run for ever; "
                "write the seconds that a batch may take, such as 60"
            )


def traits(
    *,
    timeout_s: float = TIMEOUT_SECONDS,
    reads_reference: bool = True,
    memory_mb: int = MEMORY_MB,
) -> Callable[[Declared], Declared]:
    """Declare a verifier's traits, as a decorator of its function or class.

    ::

        @traits(timeout_s=10)
        def score(completion, reference): ...

    The limits hold where the verifier has a process of its own (`evenkeel.rewards.user_verifiers.UserVerifier`).

    Args:
        timeout_s: wall time for one batch; rows that have no verdict by then are unscored.
        memory_mb: of its process, beyond what it holds when the verifier is there; a row that asks for more is
            unscored.
        reads_reference: false for one that judges the form alone: then it is not refused for paying any text.

    Raises:
        ValueError: a ``timeout_s`` or ``memory_mb`` that cannot be kept.
    """
    declared = Traits(timeout_s, reads_reference, memory_mb)

    def decorated(verifier: Declared) -> Declared:
        for name, value in vars(declared).items():
            setattr(verifier, name, value)
        return verifier

    return decorated


def traits_of(verifier: Any) -> Traits:
    """The traits of a verifier, or of the function that it is made of."""
    written = _written(verifier)
    names = ("timeout_s", "reads_reference", "memory_mb")
    return Traits(**{name: getattr(written, name) for name in names if hasattr(written, name)})


def name_of(verifier: Any) -> str:
    """``module:name`` of the class or function that the user wrote."""
    written = _written(verifier)
    named = written if hasattr(written, "__qualname__") else type(written)
    return f"{named.__module__}:{named.__qualname__}"


def _written(verifier: Any) -> Any:
    """The user's object, without what is put around a function to make a verifier of it with its options."""
    while True:
        if isinstance(verifier, functools.partial):
            verifier = verifier.func
        elif type(verifier).__module__.startswith("evenkeel.rewards.") and hasattr(verifier, "function"):
            verifier = verifier.function
        else:
            return verifier

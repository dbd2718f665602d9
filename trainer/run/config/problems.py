"""What is wrong with a configuration, in words: where it is written, what it says, why not, what to write instead."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from rewards.registry import Refusal


@dataclass(frozen=True)
class Origin:
    """Where a value was written: the file as the user named it and the line (from 1), or the command line."""

    source: str
    line: int | None = None
    folder: Path = Path()

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}, line {self.line}"


COMMAND_LINE = Origin("command line")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: ``what`` says the value and why it cannot work, ``instead`` what to write."""

    path: str
    what: str
    instead: str
    origin: Origin | None = None

    def __str__(self) -> str:
        place = ": ".join(str(part) for part in (self.origin, self.path) if part)
        return f"{place}: {self.what} {self.instead}" if place else f"{self.what} {self.instead}"


class ConfigError(Refusal):
    """Everything that is wrong with a configuration at once; ``str(error)`` is the message, ready to print."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        super().__init__(
            lines[0] if len(lines) == 1 else f"{len(lines)} problems:\n" + "\n".join(f"- {line}" for line in lines)
        )


def refusal(value: Any, what: str, instead: str, location: tuple[str | int, ...] = ()) -> InitErrorDetails:
    """One refusal in the house's words, for pydantic to carry to the place in the data where it belongs."""
    error = PydanticCustomError("refused", "{what} {instead}", {"what": what, "instead": instead})
    return InitErrorDetails(type=error, loc=location, input=value)


def refuse(refusals: Iterable[InitErrorDetails]) -> None:
    """Raise pydantic's error with these refusals, if there are any; called inside validators."""
    if found := list(refusals):
        raise ValidationError.from_exception_data("configuration", found)

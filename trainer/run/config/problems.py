"""What is wrong with a configuration: where it is written, its value, why that cannot work, what to write."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from evenkeel.errors import Refusal


@dataclass(frozen=True)
class Origin:
    """Where a value is written: the file as the user named it and the line (from 1), or the command line."""

    source: str
    line: int | None = None
    folder: Path = Path()

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}, line {self.line}"


COMMAND_LINE = Origin("command line")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a configuration.

    Attributes:
        path: the dotted path of the setting; empty where it is the file as a whole.
        what: the value, and why it cannot work.
        instead: what to write, where ``what`` does not say so already.
        origin: where it is written, if that is known.
        code: the kind of mistake, a short name in kebab case. A mistake that pydantic finds has pydantic's name for it.
    """

    path: str
    what: str
    instead: str
    origin: Origin | None = None
    code: str = field(kw_only=True)

    def __str__(self) -> str:
        place = ": ".join(str(part) for part in (self.origin, self.path) if part)
        return f"{place}{': ' * bool(place)}{self.what} {self.instead}".rstrip()


class ConfigError(Refusal):
    """Everything that is wrong with a configuration at once; ``str(error)`` is the message, ready to print."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        whole = lines[0] if len(lines) == 1 else f"{len(lines)} problems:\n" + "\n".join(f"- {line}" for line in lines)
        super().__init__(whole, code=self.problems[0].code if len(lines) == 1 else None)


def config_error(code: str, path: str, what: str, instead: str, origin: Origin | None = None) -> ConfigError:
    """The error of a single problem."""
    return ConfigError([Problem(path, what, instead, origin, code=code)])


def problem(code: str, what: str, instead: str, location: tuple[str | int, ...] = ()) -> InitErrorDetails:
    """One problem, for a validator to raise; pydantic knows the place in the data, and from there on ``location``."""
    error = PydanticCustomError(code, "{what} {instead}", {"what": what, "instead": instead})
    return InitErrorDetails(type=error, loc=location, input=None)


def raise_all(problems: Iterable[InitErrorDetails]) -> None:
    """Raise pydantic's error with these problems, if there are any; called inside validators."""
    if found := list(problems):
        raise ValidationError.from_exception_data("configuration", found)

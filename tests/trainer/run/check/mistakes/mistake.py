"""What one mistake is: a change to a run that is right, and what must be found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Mistake:
    """One mistake of a user.

    Attributes:
        name: what was got wrong, in words.
        code: of a finding of ``severity`` that there must be.
        overrides: laid over the right run's settings.
        yaml: the whole text of the run's file instead.
        files: name → text of files beside it.
        environment: variables of the environment; an empty text takes one out.
        processes: how many are said to be started.
        lacking: a package that must not be installed, or the mistake is none.
        says: the value, name or number that the finding must name.
    """

    name: str
    code: str
    overrides: tuple[str, ...] = ()
    severity: Literal["error", "warning", "note"] = "error"
    yaml: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: int | None = None
    lacking: str | None = None
    says: str = ""


def mistake(name: str, code: str, *overrides: str, **more: object) -> Mistake:
    """A `Mistake` whose overrides are the further texts."""
    return Mistake(name, code, overrides, **more)  # type: ignore[arg-type]

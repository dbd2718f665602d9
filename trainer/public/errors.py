"""Problems that a user can put right, the rules that find them, and the error that carries them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
"""``error``: a run would fail, or train something else than its file says. ``warning``: it would run, and is probably
not what was intended. ``note``: good to know."""


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
    """One thing that is wrong, or probably not intended.

    Attributes:
        path: of the setting in its file; empty where it is the file as a whole, or none.
        what: the value, and why it cannot work.
        instead: what to write, where ``what`` does not say so already.
        origin: where it is written, if that is known.
        code: the kind of mistake, a short name in kebab case. A mistake that pydantic finds has pydantic's name for it.
    """

    path: tuple[str | int, ...]
    what: str
    instead: str = ""
    origin: Origin | None = None
    code: str = field(kw_only=True)
    severity: Severity = field(default="error", kw_only=True)

    @property
    def key(self) -> str:
        """The dotted path."""
        return ".".join(map(str, self.path))

    def __str__(self) -> str:
        place = ": ".join(str(part) for part in (self.origin, self.key) if part)
        return f"{place}{': ' * bool(place)}{self.what} {self.instead}".rstrip()


Said = Iterator[str | tuple[str, str]]
"""What a rule says: what is wrong and what to write; with the dotted path of a setting before it, of that one."""


@dataclass(frozen=True)
class Rule:
    """One thing that settings must not say together.

    Attributes:
        settings: dotted paths; a problem is shown at the first, where the rule names no other.
        says: nothing where the settings go together. Its first sentence is what does not go together.
        moment: when it can be asked, a word of the table that it stands in.
    """

    settings: tuple[str, ...]
    says: Callable[[Any], Said]
    severity: Severity
    moment: str

    @property
    def code(self) -> str:
        """Its name."""
        return self.says.__name__.strip("_").replace("_", "-")

    @property
    def about(self) -> str:
        return (self.says.__doc__ or "").strip().split("\n\n")[0].rstrip(".")

    def problems(self, asked: Any) -> Iterator[Problem]:
        """What is wrong with what is asked."""
        for said in self.says(asked):
            path, what = (self.settings[0], said) if isinstance(said, str) else said
            yield Problem(tuple(path.split(".")), what, code=self.code, severity=self.severity)


def rule(
    table: list[Rule], settings: str, moment: str = "arguments", *, severity: Severity = "error"
) -> Callable[[Callable[[Any], Said]], Callable[[Any], Said]]:
    """Enter a function into a table of rules; ``settings`` have spaces between."""

    def enter(says: Callable[[Any], Said]) -> Callable[[Any], Said]:
        table.append(Rule(tuple(settings.split()), says, severity, moment))
        return says

    return enter


class Refusal(ValueError):  # noqa: N818 the base of many errors
    """What a user can put right: shown as its message alone, without a traceback.

    Attributes:
        code: the kind of mistake, a short name in kebab case; where none is given, the name of the class: ``part`` of a
            `PartError`.
        problems: each thing that is wrong; of one that was given as a sentence, that one.
    """

    code = "refusal"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, message: str = "", *, code: str | None = None, problems: Sequence[Problem] = ()) -> None:
        if len(problems) == 1:
            code = problems[0].code
        if code is not None:
            self.code = code
        super().__init__()
        self.hold(problems or [Problem((), message, code=self.code)])

    def hold(self, problems: Sequence[Problem]) -> None:
        """Take these in place of its problems, as where their lines have become known."""
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        self.args = (lines[0] if len(lines) == 1 else "\n- ".join([f"{len(lines)} problems:", *lines]),)


def closest(name: str, names: Iterable[str], n: int = 1) -> list[str]:
    """The ``n`` names that ``name`` resembles most; capitals, dashes, blanks and dots make no difference.

    First those that are spelled the same, then those that begin with it, then the nearest by their letters.
    """
    spelled, wanted = {known: _letters(known) for known in names}, _letters(name)
    same = [known for known, letters in spelled.items() if letters and letters == wanted]
    begun = [known for known, letters in spelled.items() if len(wanted) > 2 and letters.startswith(wanted)]
    near = get_close_matches(name, spelled, n) or get_close_matches(wanted, spelled.values(), n)
    found = [known for each in near for known, letters in spelled.items() if each in (known, letters)]
    return [*dict.fromkeys([*same, *begun, *found])][:n]


def suggest(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """``Did you mean …?`` with the name that ``name`` resembles most, or else ``otherwise``."""
    near = closest(name, names)
    return f"Did you mean {near[0]}?" if near else otherwise


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

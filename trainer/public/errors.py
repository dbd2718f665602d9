"""Problems that a user can fix, the rules that find them, and the error that carries them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

Severity = Literal["error", "warning", "note"]
"""``error``: a run would fail, or train something other than its file says. ``warning``: it would run, but probably not
as intended. ``note``: information."""


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
        path: keys that lead to the setting; empty for the file as a whole, or for no setting.
        what: the value, and why it cannot work.
        instead: what to write instead, unless ``what`` says it.
        origin: where the value is written, if known.
        code: the kind of mistake in kebab case; for pydantic's errors, pydantic's name.
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
"""Messages of a rule: what is wrong and what to write instead. In a pair the dotted path of the setting comes first."""


@dataclass(frozen=True)
class Rule:
    """A combination of settings that is refused, or warned about.

    Attributes:
        settings: dotted paths; a message without a path is about the first.
        says: yields a message for each conflict; its docstring begins with the conflict.
        moment: what is checked, a word: ``training`` (the file), ``arguments`` (TRL's), ``model``.
    """

    settings: tuple[str, ...]
    says: Callable[[Any], Said]
    severity: Severity
    moment: str

    @property
    def code(self) -> str:
        """Name of the rule's function, in kebab case."""
        return self.says.__name__.strip("_").replace("_", "-")

    @property
    def about(self) -> str:
        return (self.says.__doc__ or "").strip().split("\n\n")[0].rstrip(".")

    def problems(self, given: Any) -> Iterator[Problem]:
        """The conflicts in ``given``."""
        for said in self.says(given):
            path, what = (self.settings[0], said) if isinstance(said, str) else said
            yield Problem(tuple(path.split(".")), what, code=self.code, severity=self.severity)


def rule(
    table: list[Rule], settings: str, moment: str = "arguments", *, severity: Severity = "error"
) -> Callable[[Callable[[Any], Said]], Callable[[Any], Said]]:
    """Decorator: add a function to ``table``; ``settings`` are separated by spaces."""

    def enter(says: Callable[[Any], Said]) -> Callable[[Any], Said]:
        table.append(Rule(tuple(settings.split()), says, severity, moment))
        return says

    return enter


class Refusal(ValueError):  # noqa: N818 the base of many errors
    """An error that a user can fix: shown as its message alone, without a traceback.

    Attributes:
        code: the kind of mistake in kebab case; by default from the name of the class: ``part`` for `PartError`.
        problems: everything that is wrong; a ``message`` becomes one problem.
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
        """Replace the problems, for example once their lines are known."""
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        self.args = (lines[0] if len(lines) == 1 else "\n- ".join([f"{len(lines)} problems:", *lines]),)


def counted(severities: Sequence[Severity]) -> str:
    """How often each severity is among these: ``1 error, 2 warnings, 0 notes``."""
    counts = {kind: severities.count(kind) for kind in get_args(Severity)}
    return ", ".join(f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in counts.items())


def closest(name: str, names: Iterable[str], n: int = 1) -> list[str]:
    """The ``n`` names that ``name`` resembles most, ignoring case, dashes, blanks and dots.

    In this order: names with the same letters, names that begin with them, `difflib`'s closest matches.
    """
    spelled, wanted = {known: _letters(known) for known in names}, _letters(name)
    same = [known for known, letters in spelled.items() if letters and letters == wanted]
    begun = [known for known, letters in spelled.items() if len(wanted) > 2 and letters.startswith(wanted)]
    near = get_close_matches(name, spelled, n) or get_close_matches(wanted, spelled.values(), n)
    found = [known for each in near for known, letters in spelled.items() if each in (known, letters)]
    return [*dict.fromkeys([*same, *begun, *found])][:n]


def suggest(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """``Did you mean …?`` with the name that ``name`` resembles most, else ``otherwise``."""
    near = closest(name, names)
    return f"Did you mean {near[0]}?" if near else otherwise


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

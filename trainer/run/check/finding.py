"""What a check says: how grave, of what, and in words with the way out."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""``error``: the run would fail, or train something else than the file says. ``warning``: it would run, and is probably
not what was meant. ``note``: to be known."""


@dataclass(frozen=True)
class Finding:
    """One finding. ``topic`` is the part of the run that it is about: a section or key of the file, or ``machine``;
    ``file`` where the file as a whole cannot be read.
    """

    severity: Severity
    topic: str
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.text}"

    def as_dict(self) -> dict[str, str]:
        """The finding as plain data."""
        return asdict(self)


def error(topic: str, text: str) -> Finding:
    """What stops the run or makes it another one."""
    return Finding("error", topic, text)


def warning(topic: str, text: str) -> Finding:
    """What is probably not meant."""
    return Finding("warning", topic, text)


def note(topic: str, text: str) -> Finding:
    """What is to be known."""
    return Finding("note", topic, text)


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes, each in their order, nothing twice."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITIES.index(finding.severity))

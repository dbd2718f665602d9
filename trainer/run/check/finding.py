"""What a check says: how grave, of what, and in words with the way out."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

from trainer.run.config import RunConfig
from trainer.run.config.yaml_document import Node

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


_KEY = re.compile(rf"\b(?:{'|'.join(RunConfig.model_fields)})(?:(?:\.\w+)+|(?= = ))")


_ELSEWHERE = re.compile(r"command line: |[^\n]+?, line \d+: |[A-Z][A-Z_]+ ")
"""How a text begins that names its line itself, or a variable of the environment."""


def with_line(finding: Finding, tree: Node) -> Finding:
    """``finding`` with the file and line (or "command line") of the first key that it names, else of its section.

    Nothing is added to a note, to a key that is not written there, to what names its line itself, and to what is said
    of a variable of the environment.

    Args:
        tree: the run's file with what it extends and the overrides.
    """
    if finding.severity == "note" or _ELSEWHERE.match(finding.text):
        return finding
    if (named := _KEY.search(finding.text)) is not None:
        node = _written(tree, named[0])
    else:
        first = finding.text.split(maxsplit=1)[0]
        node = _written(tree, f"{finding.topic}.{first}") or _written(tree, finding.topic)
    return finding if node is None else replace(finding, text=f"{node.origin}: {finding.text}")


def _written(tree: Node, key: str) -> Node | None:
    node: Node | None = tree
    for name in key.split("."):
        node = node and node.child(int(name) if name.isdecimal() else name)
    return node


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes, each in their order, nothing twice."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITIES.index(finding.severity))

"""What is checked: a run with everything that could be built of it; and what a check reports."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from evenkeel.errors import Refusal
from evenkeel.rewards.verifier import Verifier
from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.run.config import BatchPlan, ConfigError, RunConfig
from evenkeel.trainer.run.config.problems import COMMAND_LINE
from evenkeel.trainer.run.config.yaml_document import Node
from evenkeel.trainer.step.options import PreflightError

if TYPE_CHECKING:
    from torch import nn

    from evenkeel.trainer.run.environments import Environments

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""``error``: the run would fail, or train something else than the file says. ``warning``: it would run, and is probably
not what was intended. ``note``: good to know."""


@dataclass(frozen=True)
class Finding:
    """One finding. ``topic`` is the part of the run that it is about: a section or key of the file, or ``machine``;
    ``file`` where the file as a whole cannot be read. ``code``: the kind of mistake, a short name in kebab case.
    """

    severity: Severity
    topic: str
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.text}"


def error(topic: str, code: str, text: str) -> Finding:
    """What stops the run or makes it another one."""
    return Finding("error", topic, code, text)


def warning(topic: str, code: str, text: str) -> Finding:
    """What is probably not intended."""
    return Finding("warning", topic, code, text)


def note(topic: str, code: str, text: str) -> Finding:
    """What is good to know."""
    return Finding("note", topic, code, text)


def first_of(items: Sequence[object], most: int = 5) -> str:
    """The first ``most`` of these, and how many more."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more


def refusal_findings(refusal: Refusal, topic: str) -> list[Finding]:
    """What a refusal says, each sentence of it as a finding of ``topic``, or of the section that it names."""
    if isinstance(refusal, ConfigError):
        return [error(each.path.split(".")[0] or topic, each.code, str(each)) for each in refusal.problems]
    if isinstance(refusal, PreflightError):
        return [error(topic, code, text) for code, text in refusal.problems]
    return [error(topic, refusal.code, text) for text in str(refusal).split("\n\n")]


@contextmanager
def lines_named(topic: str, tree: Node) -> Iterator[None]:
    """Inside, what is refused names its line of the file, as the findings of a check do (`with_line`)."""
    try:
        yield
    except Refusal as refusal:
        found = [with_line(finding, tree).text for finding in refusal_findings(refusal, topic)]
        if not isinstance(refusal, ConfigError):
            refusal.args = ("\n\n".join(found),)
        elif len(found) == 1:
            refusal.args = (found[0],)
        raise


_KEY = re.compile(rf"\b(?:{'|'.join(RunConfig.model_fields)})(?:(?:\.\w+)+|(?= = ))")


_ELSEWHERE = re.compile(r"command line: |[^\n]+?, line \d+: |[A-Z]+_[A-Z_]+\b")
"""How a text begins that names its line itself, or a variable of the environment."""


def with_line(finding: Finding, tree: Node) -> Finding:
    """``finding`` with the file and line (or "command line") of the first key that it names, else of its section.

    A text that begins with the name of a section, or of one of its entries ("tool …" of ``tools``), is of that one.
    Where an option is unknown to a part of the file and the command line together, it is said how to leave the file's.

    Nothing is added to a note, to a key that is not written there, to what names its line itself, and to what is said
    of a variable of the environment.

    Args:
        tree: the run's file with what it extends and the overrides.
    """
    if finding.severity == "note" or _ELSEWHERE.match(finding.text):
        return finding
    first = finding.text.split(maxsplit=1)[0]
    named = _KEY.search(finding.text)
    keys = (f"{finding.topic}.{first}", first, f"{first}s", finding.topic) if named is None else (named[0],)
    places = {key: tree.at(int(name) if name.isdecimal() else name for name in key.split(".")) for key in keys}
    key, node = next(((key, node) for key, node in places.items() if node is not None), ("", None))
    if node is None:
        return finding
    text = f"{node.origin}: {finding.text}"
    options = node.value.values() if finding.code == "unknown-option" and isinstance(node.value, dict) else ()
    if 0 < sum(option.origin == COMMAND_LINE for option in options) < len(options):
        text += f" An override adds to what the file says: write {key}=null before it to leave that out."
    return replace(finding, text=text)


def sort_by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes, each in their order, nothing twice."""
    return sorted(dict.fromkeys(findings), key=lambda finding: SEVERITIES.index(finding.severity))


@dataclass
class CheckContext:
    """A run before it is started. What could not be built is ``None`` or empty, and its checks say nothing.

    Attributes:
        processes: how many the run is started on, or would be.
        environments: as `Experiment.environments` gives them.
        rows: ``train`` and the held-out sets, as `Experiment.rows` gives them.
        args: TRL's arguments.
        settings: the model's configuration; of one that also sees, the text's.
        skeleton: the model on torch's meta device: names and shapes without weights.
        most_rows: of each set, so many rows are tokenized.
        prompt_lengths: tokens of the prompts of each set that were tokenized (`lengths.tokenized_lengths`).
        here: the run starts on this machine and now; else a GPU that it lacks is not held against it.
    """

    config: RunConfig
    processes: int
    verifiers: Mapping[str, Verifier] = field(default_factory=dict)
    strategies: Strategies | None = None
    plan: BatchPlan | None = None
    args: Any = None
    rows: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Any = None
    settings: Any = None
    skeleton: "nn.Module | None" = None
    most_rows: int = 1000
    here: bool = False
    environments: "Environments | None" = None
    prompt_lengths: Mapping[str, list[int]] = field(default_factory=dict)

    @property
    def num_passes(self) -> int:
        """Passes over each rollout batch that the update schedule makes."""
        return 1 if self.strategies is None else self.strategies.schedule.num_passes

    @property
    def is_half_precision(self) -> bool:
        """Whether forward passes compute in 16 bits; bf16 is TRL's default."""
        return bool(self.config.trl.get("bf16", True) or self.argument("fp16"))

    @property
    def max_positions(self) -> int | None:
        """Positions that the model was made for, where its configuration says so."""
        found = getattr(self.settings, "max_position_embeddings", None)
        return found if isinstance(found, int) and found > 0 else None

    def argument(self, name: str) -> Any:
        """One of TRL's arguments, as the file gives it or TRL's default."""
        from evenkeel.trainer.run.config.trl_arguments import grpo_default

        return self.config.trl.get(name, grpo_default(name))

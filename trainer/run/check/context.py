"""A run before it is started, shared by all checks: each part is built on first use."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from evenkeel.errors import Problem, Refusal, Severity
from evenkeel.rewards.registry import CodeNotRunError
from evenkeel.trainer.run.check.model import model_settings, skeleton_of
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.problems import config_error
from evenkeel.trainer.run.config.yaml_document import Node
from evenkeel.trainer.run.data.conversations import as_messages
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.library_errors import UNEXPLAINED, at_its_line, in_words, place_of

if TYPE_CHECKING:
    from torch import nn

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_LONGEST = 128
"""Prompts of each set that are tokenized: the longest by characters."""
_PARTS: dict[str, tuple[str, ...]] = {
    "strategies": ("algorithm",),
    "plan": ("algorithm",),
    "args": ("trl",),
    "rows": ("data",),
    "tokenizer": ("model", "name_or_path"),
    "settings": ("model", "name_or_path"),
}
"""Part of an experiment, or the model's configuration → the section whose problem it is if it cannot be built."""


@dataclass
class CheckContext:
    """A run and its problems. Its parts are those of `Experiment`, and the model's ``settings``.

    Attributes:
        tree: the run file and the command line.
        problems: so far.
        faults: part that could not be built, or must not be used → its exception, also among the problems.
    """

    experiment: Experiment
    tree: Node
    problems: list[Problem] = field(default_factory=list)
    faults: dict[str, Exception] = field(default_factory=dict)

    @property
    def config(self) -> RunConfig:
        return self.experiment.config

    def __getattr__(self, name: str) -> Any:
        """A part; its exception becomes a problem of its section and is raised again at each use."""
        if name not in _PARTS:
            raise AttributeError(name)
        if name not in self.faults:
            with self.collecting(*_PARTS[name]):
                try:
                    return self._settings if name == "settings" else getattr(self.experiment, name)
                except Exception as fault:
                    self.faults[name] = fault
                    raise
        raise self.faults[name]

    @contextmanager
    def collecting(self, *path: str, unexplained: Severity = "error") -> Iterator[None]:
        """Turn what is raised inside into problems, at ``path`` where they name no other place.

        ``unexplained`` is the severity of exceptions that are no `Refusal`: a check that fails itself is a warning.
        """
        try:
            yield
        except CodeNotRunError as fault:
            self.add(Problem(path, str(fault), code=fault.code, severity="note"))
        except Refusal as fault:
            self.add(*fault.problems, path=path)
        except Exception as fault:  # noqa: BLE001 — libraries raise anything at what a user wrote
            place, what = place_of(fault, self.tree) or path, f"{in_words(fault)} {UNEXPLAINED}"
            self.add(Problem(place, what, code="unexplained", severity=unexplained))

    def add(self, *problems: Problem, path: tuple[str, ...] = ()) -> None:
        """Add problems at their lines, except repeated ones; ``path`` is for those without a place."""
        found = [at_its_line(each, self.tree, path) for each in problems]
        known = {each.what for each in self.problems}
        self.problems += [each for each in found if each.what not in known]

    @cached_property
    def _settings(self) -> Any:
        return model_settings(self.config)

    @property
    def text_settings(self) -> Any:
        """The configuration of the model's text part."""
        return self.settings.get_text_config()

    @cached_property
    def skeleton(self) -> "nn.Module | None":
        """The model on torch's meta device: names and shapes without weights."""
        return skeleton_of(self.settings)

    @cached_property
    def longest(self) -> dict[str, list[Any]]:
        """The `_LONGEST` prompts of each set with the most characters."""

        def characters(prompt: Any) -> int:
            return sum(len(message["content"]) for message in as_messages(prompt))

        return {part: nlargest(_LONGEST, rows["prompt"][:], key=characters) for part, rows in self.rows.items()}

    @cached_property
    def longest_prompts(self) -> dict[str, int]:
        """Tokens of the longest prompt of each set."""
        special = {"add_special_tokens": self.config.model.raw_prompts}
        texts = {part: self.rendered(part, prompts) for part, prompts in self.longest.items()}
        return {part: max(map(len, self.tokenizer(each, **special)["input_ids"])) for part, each in texts.items()}

    def rendered(self, part: str, prompts: list[Any]) -> list[str]:
        """Prompts of a set as the policy reads them; a `Refusal` where its template fails."""
        if self.config.model.raw_prompts:
            return prompts
        tokenizer, options = self.tokenizer, self.config.argument("chat_template_kwargs") or {}
        try:
            return tokenizer.apply_chat_template(prompts, add_generation_prompt=True, tokenize=False, **options)
        except Exception as fault:  # a template is a program of its own
            what = f"the model's chat template cannot write its prompts: {in_words(fault)}"
            raise config_error("tokenizer", f"data.{part}", what) from fault


def first_of(items: Sequence[object], most: int = 5) -> str:
    """The first ``most`` items, and the number of others."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more

"""A run before it is started, with what the checks of one share: each part is built when it is first asked for."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evenkeel.errors import Problem, Refusal, Severity
from evenkeel.rewards.registry import CodeNotRunError
from evenkeel.trainer.run.check.model import model_settings, skeleton_of
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.trl_arguments import grpo_default
from evenkeel.trainer.run.config.yaml_document import Node
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.library_errors import UNEXPLAINED, at_its_line, in_words, place_of
from evenkeel.trainer.run.tokenizer import folder_fault

if TYPE_CHECKING:
    from torch import nn

_LONGEST = 64
"""Prompts, the longest by characters, that are all tokenized."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class UnbuiltError(Exception):
    """A part could not be built, which is a problem already."""


@dataclass
class CheckContext:
    """A run, and what is wrong with it.

    Attributes:
        tree: what its file and the command line say.
        most_rows: of each set, so many prompts are tokenized.
        here: the run starts on this machine and now; else a GPU that it lacks is not held against it.
        problems: so far.
        unbuilt: parts that are not to be used; why is among the problems.
    """

    experiment: Experiment
    tree: Node
    most_rows: int = 1000
    here: bool = False
    problems: list[Problem] = field(default_factory=list)
    unbuilt: set[str] = field(default_factory=set)

    @property
    def config(self) -> RunConfig:
        return self.experiment.config

    @contextmanager
    def collecting(self, *path: str, unexplained: Severity = "error") -> Iterator[None]:
        """Turn what is raised inside into problems, at ``path`` where they name no other place.

        Args:
            unexplained: of what is no refusal: a check that fails is no reason to refuse a run.
        """
        try:
            yield
        except UnbuiltError:
            return
        except CodeNotRunError as fault:
            self.problems.append(Problem(path, str(fault), code=fault.code, severity="note"))
        except Refusal as fault:
            self.add(*fault.problems, path=path)
        except Exception as fault:  # noqa: BLE001 — libraries raise anything at what a user wrote
            place, what = place_of(fault, self.tree) or path, f"{in_words(fault)} {UNEXPLAINED}"
            self.add(Problem(place, what, code="unexplained", severity=unexplained))

    def add(self, *problems: Problem, path: tuple[str, ...] = ()) -> None:
        """Add problems at their lines, but those that are there."""
        found = [at_its_line(each, self.tree, path) for each in problems]
        known = {each.what for each in self.problems}
        self.problems += [each for each in found if each.what not in known]

    def part(self, name: str, *path: str) -> Any:
        """A part of the experiment.

        Raises:
            UnbuiltError: it cannot be built; why is among the problems.
        """
        if name not in self.unbuilt:
            with self.collecting(*path):
                return getattr(self.experiment, name)
            self.unbuilt.add(name)
        raise UnbuiltError

    @property
    def strategies(self) -> Any:
        return self.part("strategies", "algorithm")

    @property
    def plan(self) -> Any:
        return self.part("plan", "algorithm")

    @property
    def args(self) -> Any:
        return self.part("args", "trl")

    @property
    def rows(self) -> Any:
        return self.part("rows", "data")

    @property
    def tokenizer(self) -> Any:
        return self.part("tokenizer", "model", "name_or_path")

    @cached_property
    def settings(self) -> Any:
        """The model's configuration; of one that also sees, all of it."""
        if (fault := folder_fault(self.config.model.name_or_path)) is not None:
            raise fault
        return model_settings(self.config)

    @cached_property
    def text_settings(self) -> Any:
        return self.settings.get_text_config()

    @cached_property
    def skeleton(self) -> "nn.Module | None":
        """The model on torch's meta device: names and shapes without weights."""
        return skeleton_of(self.settings)

    @cached_property
    def prompt_lengths(self) -> dict[str, list[int]]:
        """Tokens of the prompts of each set: of the longest by their characters, and of others evenly spread."""
        lengths, options, tokenizer = {}, self.argument("chat_template_kwargs") or {}, self.tokenizer
        for part, rows in self.rows.items():
            prompts = rows["prompt"][:]
            chosen = [prompts[row] for row in chosen_rows(prompts, self.most_rows)]
            try:
                written = tokenizer.apply_chat_template(chosen, add_generation_prompt=True, tokenize=False, **options)
            except Exception as fault:  # a template is a program of its own
                what = f"the model's chat template cannot write its prompts: {in_words(fault)}"
                raise Refusal(problems=[Problem(("data", *part.split(".")), what, code="tokenizer")]) from fault
            lengths[part] = [len(ids) for ids in tokenizer(written, add_special_tokens=False)["input_ids"]]
        return lengths

    @property
    def is_half_precision(self) -> bool:
        """Whether forward passes compute in 16 bits; bf16 is TRL's default."""
        return bool(self.config.trl.get("bf16", True) or self.argument("fp16"))

    @property
    def max_positions(self) -> int | None:
        """Positions that the model was made for, where its configuration says so."""
        found = getattr(self.text_settings, "max_position_embeddings", None)
        return found if isinstance(found, int) and found > 0 else None

    def argument(self, name: str) -> Any:
        """One of TRL's arguments, as the file gives it or TRL's default."""
        return self.config.trl.get(name, grpo_default(name))


def first_of(items: Sequence[object], most: int = 5) -> str:
    """The first ``most`` of these, and how many more."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more


def chosen_rows(prompts: Sequence[Any], most: int) -> list[int]:
    """The rows that are tokenized: all, or the `_LONGEST` and evenly spread ones, ``most`` in all."""
    if len(prompts) <= most:
        return [*range(len(prompts))]
    sizes = [sum(len(message["content"]) for message in prompt) for prompt in prompts]
    longest = sorted(range(len(prompts)), key=lambda row: -sizes[row])[: min(_LONGEST, most // 2)]
    others = most - len(longest)
    return sorted({*longest, *(number * len(prompts) // others for number in range(others))})

"""All findings of a run at once, before its model's weights are loaded; and the same, briefly, as it starts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import is_of_python, without_own_code
from evenkeel.trainer.run.check.chat_template import template_findings
from evenkeel.trainer.run.check.context import (
    CheckContext,
    Finding,
    error,
    lines_named,
    note,
    refusal_findings,
    sort_by_severity,
    warning,
    with_line,
)
from evenkeel.trainer.run.check.data import data_findings, reward_findings
from evenkeel.trainer.run.check.lengths import length_findings, tokenized_lengths
from evenkeel.trainer.run.check.lora import lora_findings
from evenkeel.trainer.run.check.machine import device_memory, directory_findings, memory_estimates, memory_findings
from evenkeel.trainer.run.check.memory import MemoryEstimate
from evenkeel.trainer.run.check.model import folder_fault, model_findings, model_settings, skeleton_of
from evenkeel.trainer.run.check.named_code import file_of, named_code
from evenkeel.trainer.run.check.optimizer import optimizer_findings
from evenkeel.trainer.run.check.packages import device_findings, engine_findings, package_findings
from evenkeel.trainer.run.check.plan import Plan, plan_of, possible_processes
from evenkeel.trainer.run.check.prepare import Collected, prepared
from evenkeel.trainer.run.check.rehearsal import rehearse
from evenkeel.trainer.run.check.settings import logging_findings, rule_findings, setting_findings
from evenkeel.trainer.run.check.weights import weight_findings
from evenkeel.trainer.run.config import RunConfig, load_tolerantly
from evenkeel.trainer.run.config.layers import layered
from evenkeel.trainer.run.config.yaml_document import Node
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.library_errors import UNEXPLAINED, in_words, key_named

_BRIEF_ROWS = 128
"""Prompts of each set that are tokenized again as a run starts."""

_CHECKS: tuple[tuple[str, frozenset[str], Callable[[CheckContext], Iterator[Finding]]], ...] = (
    ("model", frozenset({"model", "trl"}), model_findings),
    ("model", frozenset({"model"}), weight_findings),
    ("model", frozenset({"model", "data"}), template_findings),
    ("model", frozenset({"model"}), lora_findings),
    ("rewards", frozenset({"rewards"}), reward_findings),
    ("data", frozenset({"data"}), data_findings),
    ("data", frozenset({"model", "data", "trl"}), length_findings),
    ("trl", frozenset({"trl", "evaluation"}), setting_findings),
    ("trl", frozenset({"trl"}), optimizer_findings),
    ("logging", frozenset({"logging"}), logging_findings),
    ("trl", frozenset({"trl", "logging", "algorithm"}), rule_findings),
    ("machine", frozenset({"trl", "model"}), package_findings),
    ("machine", frozenset({"trl"}), engine_findings),
    ("machine", frozenset({"trl"}), device_findings),
    ("machine", frozenset(), directory_findings),
)
"""Topic, the sections that it judges, the check."""


@dataclass(frozen=True)
class Code:
    """Code that a run's file names.

    Attributes:
        name: ``module:attribute``, or the model whose folder holds it.
        file: of the module; ``None`` where there is none, or it is the model's.
        key: dotted, and ``written``: the line or the command line.
    """

    name: str
    file: str | None
    key: str
    written: str

    def __str__(self) -> str:
        return f"  {self.name} ({self.file or 'no file'}): {self.written}, {self.key}"


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        plan: ``None`` where the batch arithmetic does not hold.
        memory: estimates by the way of dividing the model.
        processes: numbers of processes on which the batch can be cut.
        not_checked: sections with a wrong setting, which are not checked any further.
        prompt_tokens: part → of how many prompts that were tokenized the longest has how many tokens.
        code: what the file names beside built-in parts.
    """

    findings: list[Finding]
    plan: Plan | None = None
    memory: dict[Any, MemoryEstimate] | None = None
    processes: tuple[int, ...] = ()
    not_checked: tuple[str, ...] = ()
    prompt_tokens: dict[str, tuple[int, int]] | None = None
    code: tuple[Code, ...] = ()

    @property
    def errors(self) -> list[Finding]:
        """Those that stop the run."""
        return [finding for finding in self.findings if finding.severity == "error"]


def checked(
    path: str,
    overrides: Sequence[str],
    *,
    processes: int | None,
    device_bytes: int | None = None,
    runs_code: bool = True,
    on_code: Callable[[Sequence[Code]], object] = len,
    known: dict[str, Any] | None = None,
) -> Checked:
    """Everything that is wrong with the run of a file.

    Args:
        processes: on which it is to be started; ``None`` = as many as the file says, or one.
        device_bytes: memory of each device; ``None`` = of this machine's.
        runs_code: ``False`` = import no part that is not built in and no code of the model's; each gives a note.
        on_code: called with what the file names, before any of it is imported.
        known: rows of earlier checks, which those of the same rows and rewards share.
    """
    config, problems = load_tolerantly(path, overrides)
    found = Collected(error(problem.path.split(".")[0] or "file", problem.code, str(problem)) for problem in problems)
    if config is None:
        return Checked([*found])
    invalid_sections = {problem.path.split(".")[0] for problem in problems}
    tree = layered(Path(path), overrides)
    code = _code_of(config, tree)
    on_code(code)
    experiment = Experiment(config, Path(path).resolve().parent, processes or config.num_processes or 1)
    with ExitStack() as limits:
        if not runs_code:
            limits.enter_context(without_own_code())
            if config.model.trust_remote_code:
                invalid_sections.add("model")
                text = "model.trust_remote_code: the model's own code is not run, so nothing is checked of the model."
                found.append(note("model", "code-not-run", text))
        context = prepared(experiment, invalid_sections, found, {} if known is None else known)
        result = _checked(context, found, invalid_sections, device_bytes, tree)
        if runs_code and not result.errors and not problems and context.args is not None:
            experiment.rows = {**context.rows}  # not made again
            result = replace(result, findings=[*_rehearsed(experiment, tree), *result.findings])
        return replace(result, code=code)


def _rehearsed(experiment: Experiment, tree: Node) -> list[Finding]:
    """What stops a rehearsal, at its line; nothing where none is possible."""
    try:
        rehearse(experiment, model_settings(experiment.config))
    except Refusal as refusal:
        return [with_line(each, tree) for each in refusal_findings(refusal, "trl")]
    except Exception as fault:  # noqa: BLE001 — libraries raise anything at what a user wrote
        key = key_named(fault, tree)
        said = f"{'.'.join(map(str, key))}: " if key else ""
        text = f"{said}a rehearsal on the CPU ended in {in_words(fault)} {UNEXPLAINED}"
        return [with_line(error(str((*key, "trl")[0]), "rehearsal", text), tree)]
    return []


def _code_of(config: RunConfig, tree: Node) -> tuple[Code, ...]:
    """What is imported for a run, and where it is named; what is refused for its name alone is no such thing."""
    named = {place: name for place, name in named_code(config).items() if not is_of_python(name)}
    files = {place: file_of(name.partition(":")[0]) for place, name in named.items()}
    if config.model.trust_remote_code:
        place = ("model", "trust_remote_code")
        named[place], files[place] = f"the code of {config.model.name_or_path}", None
    written = {place: tree.at(place) or tree.at(place[:-1]) or tree for place in named}
    return tuple(
        Code(name, str(files[place]) if files[place] else None, ".".join(map(str, place)), str(written[place].origin))
        for place, name in named.items()
    )


def checked_before_start(experiment: Experiment, tree: Node) -> Checked:
    """The same of a run that is about to start, of which everything can be built; few prompts are tokenized again.

    Args:
        tree: what is written in the run's file and on the command line.

    Raises:
        Refusal: no policy can be loaded from its folder.
        Refusal: there are errors; the message names them all.
    """
    config = experiment.config
    with lines_named("model", tree):
        if (fault := folder_fault(config.model.name_or_path)) is not None:
            raise fault
        settings = model_settings(config)
    context = CheckContext(
        config,
        experiment.processes,
        experiment.verifiers,
        experiment.strategies,
        experiment.plan,
        experiment.args,
        experiment.rows,
        experiment.tokenizer,
        settings.get_text_config(),
        most_rows=_BRIEF_ROWS,
        here=True,
    )
    found = Collected()
    with found.of("model", unexplained=warning):
        context.skeleton = skeleton_of(config, settings)
    result = _checked(context, found, set(), None, tree)
    if result.errors:
        code = result.errors[0].code if len(result.errors) == 1 else None
        raise Refusal("\n\n".join(finding.text for finding in result.errors), code=code)
    return result


def _checked(
    context: CheckContext, found: Collected, invalid_sections: set[str], device_bytes: int | None, tree: Node
) -> Checked:
    with found.of("data", unexplained=warning):
        context.prompt_lengths = tokenized_lengths(context)
    for topic, sections, check in _CHECKS:
        if not sections & invalid_sections:
            with found.of(topic, unexplained=warning):
                found.extend(check(context))
    tokens: dict[str, tuple[int, int]] = {}
    estimates: dict[Any, MemoryEstimate] = {}
    if not invalid_sections & {"trl", "model", "data"}:
        with found.of("data", unexplained=warning):
            tokens = {part: (len(each), max(each)) for part, each in context.prompt_lengths.items()}
        with found.of("machine", unexplained=warning):
            device = device_memory(context) if device_bytes is None else device_bytes
            longest = max((longest for _, longest in tokens.values()), default=None)
            estimates = memory_estimates(context, longest, device)
            found.extend(memory_findings(context, estimates, device))
    plan = None
    with found.of("trl", unexplained=warning):
        plan = plan_of(context)
    return Checked(
        sort_by_severity(_each_once(with_line(finding, tree) for finding in found)),
        plan,
        estimates,
        possible_processes(context.config) if plan else (),
        tuple(sorted(invalid_sections)),
        tokens,
    )


def _each_once(findings: Iterable[Finding]) -> list[Finding]:
    """Without one that another, longer one contains: a part may be refused twice on its way."""
    listed = [*findings]
    first = {finding.text: finding for finding in reversed(listed)}
    inside = {text for text in first if any(text in other and text != other for other in first)}
    return [each for each in listed if each is first[each.text] and each.text not in inside]

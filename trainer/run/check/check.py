"""All problems of a run, before its model's weights are loaded; `checked_before_start` is without the rehearsal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenkeel.errors import Problem, Refusal
from evenkeel.rewards.registry import without_own_code
from evenkeel.trainer.run.branch import branch_of
from evenkeel.trainer.run.check.context import SEVERITIES, CheckContext
from evenkeel.trainer.run.check.data import data_problems, reward_problems
from evenkeel.trainer.run.check.machine import (
    device_memory,
    disk_problems,
    machine_problems,
    memory_estimates,
    memory_problems,
)
from evenkeel.trainer.run.check.memory import MemoryEstimate
from evenkeel.trainer.run.check.model import size_of
from evenkeel.trainer.run.check.plan import Plan, plan_of
from evenkeel.trainer.run.check.prompts import check_bounded, form_problems, length_problems, template_problems
from evenkeel.trainer.run.check.rehearsal import rehearse
from evenkeel.trainer.run.check.weights import model_problems
from evenkeel.trainer.run.config import RunConfig, load_config, planned_config
from evenkeel.trainer.run.config.layers import layered
from evenkeel.trainer.run.config.rules import Given, warnings_of
from evenkeel.trainer.run.config.yaml_document import Node
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.preflight import schedule_checks
from evenkeel.trainer.run.record.manifest import data_fingerprint


@dataclass
class Checked:
    """The result of a check.

    Attributes:
        problems: errors first, then warnings and notes.
        plan: ``None`` where a part of the run cannot be built.
        memory: estimates by the way of dividing the model.
        prompt_tokens: part → tokens of its longest prompt.
    """

    problems: list[Problem] = field(default_factory=list)
    plan: Plan | None = None
    memory: dict[Any, MemoryEstimate] = field(default_factory=dict)
    prompt_tokens: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> list[Problem]:
        """The problems that stop the run."""
        return [problem for problem in self.problems if problem.severity == "error"]


def checked(
    path: str,
    overrides: Sequence[str],
    *,
    processes: int | None,
    device_bytes: int | None = None,
    runs_code: bool = True,
    known: dict[str, Any] | None = None,
) -> Checked:
    """Everything that is wrong with a run file: its keys; if these are right its parts; then a rehearsal.

    Args:
        processes: of the run; ``None`` = as many as the file says, or one.
        device_bytes: memory of each device; ``None`` = that of this machine's.
        runs_code: ``False`` = import only built-in parts and no code of the model's, and do not rehearse; each part
            that is left out gives a note.
        known: cache of rows and verifiers, shared by checks with the same data and rewards.
    """
    try:
        tree, config = layered(Path(path), overrides), load_config(path, overrides)
    except Refusal as refusal:
        return Checked([*refusal.problems])
    experiment = Experiment(config, Path(path).resolve().parent, processes or config.num_processes or 1)
    context = CheckContext(experiment, tree)
    with ExitStack() as limits:
        if not runs_code:
            limits.enter_context(without_own_code())
            if config.model.trust_remote_code:
                return Checked([_not_rehearsed("its own code is not run: nothing of the model is checked.")])
        _build(context, {} if known is None else known)
        result = _checked(context, device_bytes)
        if runs_code and not result.errors:
            with context.collecting("trl"):
                if not rehearse(experiment, context.settings):
                    context.add(_not_rehearsed("cannot be cut to two layers: nothing is rehearsed."))
    return replace(result, problems=_sorted(context.problems))


def _not_rehearsed(what: str) -> Problem:
    return Problem(("model", "name_or_path"), what, code="code-not-run", severity="note")


def _build(context: CheckContext, known: dict[str, Any]) -> None:
    """Build each part; rows are checked without verifiers or environments that cannot be built."""
    experiment, config = context.experiment, context.config
    for name, section in (("environments", "environment"), ("verifiers", "rewards")):
        before = len(context.problems)
        with context.collecting(section):
            getattr(experiment, name)
        if len(context.problems) > before:
            setattr(experiment, name, {})
    sections = config.model_dump_json(include={"data", "rewards", "environment", "tools"})
    sections += str(config.algorithm.prompt_sampler)  # which may keep a column of the rows
    sections += f"{config.model.raw_prompts}"
    if sections in known:
        experiment.verifiers, experiment.environments, experiment.rows = known[sections]
    with context.collecting("data"):
        known[sections] = experiment.verifiers, experiment.environments, context.rows
    with context.collecting("trl"):
        experiment.args = planned_config(config, experiment.processes, _lacking(config))
    with context.collecting():
        for name in ("strategies", "plan", "rows", "args"):  # the first that cannot be built ends the block
            getattr(context, name)
        for section, check in schedule_checks(experiment):
            with context.collecting(section):
                check()
        with context.collecting("branch_of"):
            branch_of(experiment, data_fingerprint(context.rows["train"]))


def _lacking(config: RunConfig) -> dict[str, Any]:
    """Replacements for arguments that TRL would refuse only because this machine lacks a GPU or DeepSpeed."""
    import torch

    instead: dict[str, Any] = {}
    if not torch.cuda.is_available() and not config.trl.get("use_cpu"):
        instead |= {"use_cpu": True, "bf16": False, "fp16": False, "tf32": None}
    if config.trl.get("deepspeed") is not None and find_spec("deepspeed") is None:
        instead["deepspeed"] = None
    return instead


def checked_before_start(experiment: Experiment, tree: Node) -> Checked:
    """The checks of a run that is about to start: of `checked` without a rehearsal; a `Refusal` holds all errors."""
    context = CheckContext(experiment, tree)
    result = _checked(context, None)
    if result.errors:
        raise Refusal(problems=result.errors)
    return result


_CHECKS: tuple[tuple[str, Callable[[CheckContext], Iterator[Problem]]], ...] = (
    ("model", model_problems),
    ("model", template_problems),
    ("rewards", reward_problems),
    ("rewards", form_problems),
    ("data", data_problems),
    ("data", length_problems),
    ("trl", machine_problems),
)


def _checked(context: CheckContext, device_bytes: int | None) -> Checked:
    result = Checked()
    with context.collecting("model"):
        try:
            _ = context.settings
        except Exception as fault:  # an unreadable model is reported once, here
            context.faults["tokenizer"] = fault
            raise
    with context.collecting("model", unexplained="warning"):
        check_bounded(context)
    for section, check in _CHECKS:
        with context.collecting(section, unexplained="warning"):
            context.add(*check(context))
    with context.collecting("algorithm", unexplained="warning"):
        context.add(*warnings_of(Given(context.config.model_dump(exclude_unset=True))))
        result.plan = plan_of(context)
    with context.collecting("model", unexplained="warning"):
        result.prompt_tokens = context.longest_prompts
        size = None
        with context.collecting("model", "lora"):
            if context.skeleton is not None:
                size = size_of(context.skeleton, context.settings, context.config)
        if size is not None:
            device = device_memory(context) if device_bytes is None else device_bytes
            result.memory = memory_estimates(context, size, device)
            context.add(*memory_problems(result.memory, device), *disk_problems(context, size))
    result.problems = _sorted(context.problems)
    return result


def _sorted(problems: list[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: SEVERITIES.index(problem.severity))

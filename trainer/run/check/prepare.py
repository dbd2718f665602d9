"""A run built as far as it can be built, with a finding for each part that cannot."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.rewards.registry import CodeNotRunError
from evenkeel.trainer.algorithms.contract import ADVANTAGE, PROMPT_SAMPLER, UPDATE_SCHEDULE
from evenkeel.trainer.algorithms.mixtures import find_estimator
from evenkeel.trainer.algorithms.registry import KINDS, find_strategy
from evenkeel.trainer.algorithms.trial import tried, tried_sampler, tried_schedule
from evenkeel.trainer.run.branch import branch_of
from evenkeel.trainer.run.check.context import CheckContext, Finding, error, note, refusal_findings, warning
from evenkeel.trainer.run.check.model import folder_fault, model_settings, skeleton_of
from evenkeel.trainer.run.config import RunConfig, planned_config
from evenkeel.trainer.run.environments import routed, try_on_rows
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.library_errors import UNEXPLAINED, in_words
from evenkeel.trainer.run.preflight import schedule_checks
from evenkeel.trainer.run.record.manifest import data_fingerprint

_TRIED = {UPDATE_SCHEDULE: tried_schedule, PROMPT_SAMPLER: tried_sampler}


class Collected(list[Finding]):
    """Findings, to which every part that cannot be built adds what it says."""

    @contextmanager
    def of(self, topic: str, *, unexplained: Callable[[str, str, str], Finding] = error) -> Iterator[None]:
        """Turn what is raised inside into findings of ``topic``: a check never ends in a traceback.

        Args:
            unexplained: how grave it is where something else than a refusal is raised: a check that fails is no reason
                to refuse a run.
        """
        try:
            yield
        except CodeNotRunError as fault:
            self.append(note(topic, fault.code, str(fault)))
        except Refusal as fault:
            self.extend(refusal_findings(fault, topic))
        except Exception as fault:  # noqa: BLE001 — libraries raise anything at what a user wrote
            self.append(unexplained(topic, "unexplained", f"{in_words(fault)} {UNEXPLAINED}"))


def prepared(
    experiment: Experiment, invalid_sections: Collection[str], findings: Collected, known: dict[str, Any]
) -> CheckContext:
    """All of ``experiment`` that could be built; what could not is added to ``findings``.

    Args:
        invalid_sections: sections of which a setting was refused, so that what depends on them is not judged.
        known: rows and verifiers, with what was found in them, by the sections that say them; added to.
    """
    context = CheckContext(experiment.config, experiment.processes)
    with findings.of("environment"):
        context.environments = experiment.environments
    if context.environments is None:
        experiment.environments = {}
    if not {"rewards", "data"} & {*invalid_sections}:
        sections = experiment.config.model_dump_json(include={"data", "rewards"})
        if sections not in known:
            known[sections] = _verifiers_and_rows(experiment)
        context.verifiers, rows, found = known[sections]
        findings.extend(found)
        with findings.of("data"):
            try_on_rows(experiment.environments, {f"data.{part}": each for part, each in rows.items()})
        context.rows = {part: routed(each, experiment.environments) for part, each in rows.items()}
    if "algorithm" not in invalid_sections:
        _strategies(context, experiment, findings)
    if not {"algorithm", "trl", "num_processes", "model"} & {*invalid_sections}:
        _arguments(context, experiment, findings)
    if "model" not in invalid_sections:
        _model(context, experiment, findings)
    if context.args is not None and context.strategies is not None and "train" in context.rows:
        with findings.of("branch_of"):
            branch_of(experiment, data_fingerprint(context.rows["train"]), experiment.processes)
    return context


def _with(experiment: Experiment, **sections: Any) -> Experiment:
    return replace(experiment, config=experiment.config.model_copy(update=sections))


def _verifiers_and_rows(experiment: Experiment) -> tuple[dict[str, Any], dict[str, Any], Collected]:
    findings = Collected()
    built: dict[str, Any] = {}
    for reward in experiment.config.rewards:
        with findings.of("rewards"):
            built |= _with(experiment, rewards=[reward]).verifiers
    rows: dict[str, Any] = {}
    data = experiment.config.data
    for changes in ({"test": None}, {"train": None}):
        part = _with(experiment, data=data.model_copy(update=changes))
        part.verifiers, part.environments = built, {}
        before = len(findings)
        with findings.of("data"):
            rows |= part.rows
        if len(findings) > before:
            part.verifiers = {}  # without them, for what is checked of the prompts
            with suppress(Refusal):
                rows |= part.rows
    return built, rows, findings


def _strategies(context: CheckContext, experiment: Experiment, findings: Collected) -> None:
    try:
        context.strategies = experiment.strategies
        return
    except Refusal as together:
        before = len(findings)
        given = experiment.config.algorithm.strategies
        for kind in KINDS:
            if given[kind] is not None:
                with findings.of("algorithm"):
                    found = find_estimator(given[kind]) if kind == ADVANTAGE else find_strategy(kind, given[kind])
                    _TRIED.get(kind, tried)(found)
        if len(findings) == before:
            findings.append(error("algorithm", together.code, str(together)))


def _arguments(context: CheckContext, experiment: Experiment, findings: Collected) -> None:
    config = experiment.config
    with findings.of("algorithm"):
        context.plan = experiment.plan
    if context.plan is None:
        return
    with findings.of("trl"):
        context.args = planned_config(config, experiment.processes, _lacking(config))
    if context.args is None or context.strategies is None:
        return
    rows = context.rows.get("train")
    for topic, check in schedule_checks(
        config, context.args, context.strategies, context.plan, rows, context.environments
    ):
        with findings.of(topic):
            check()


def _lacking(config: RunConfig) -> dict[str, Any]:
    """Arguments that this machine would refuse for what it lacks; that it lacks it is a finding of its own."""
    import torch

    instead: dict[str, Any] = {}
    if not torch.cuda.is_available() and not config.trl.get("use_cpu"):
        instead |= {"use_cpu": True, "bf16": False, "fp16": False, "tf32": None}
    deepspeed = config.trl.get("deepspeed")
    if deepspeed is not None and (find_spec("deepspeed") is None or not Path(str(deepspeed)).is_file()):
        instead["deepspeed"] = None
    return instead


def _model(context: CheckContext, experiment: Experiment, findings: Collected) -> None:
    name = context.config.model.name_or_path
    if (fault := folder_fault(name)) is not None:
        findings.append(error("model", fault.code, str(fault)))
    if fault is not None and not (Path(name) / "config.json").is_file():
        return
    with findings.of("model"):
        context.settings = model_settings(context.config)
    if context.settings is None:
        return
    with findings.of("model"):
        context.tokenizer = experiment.tokenizer
    with findings.of("model", unexplained=warning):
        context.skeleton = skeleton_of(context.config, context.settings)
    context.settings = context.settings.get_text_config()

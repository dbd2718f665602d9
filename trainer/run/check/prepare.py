"""A run built as far as it can be built, with a finding for each part that cannot."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewards.registry import Refusal
from trainer.algorithms.contract import PROMPT_SAMPLER, UPDATE_SCHEDULE
from trainer.algorithms.registry import KINDS, find_strategy
from trainer.algorithms.strategies import build_strategies
from trainer.algorithms.trial import tried, tried_sampler, tried_schedule
from trainer.run.check.finding import Finding, error, warning
from trainer.run.check.model import model_settings, skeleton_of
from trainer.run.check.model_folder import folder_fault
from trainer.run.check.subject import Subject
from trainer.run.config import ConfigError, RunConfig, batch_plan, planned_config
from trainer.run.data import check_rows_enough
from trainer.run.launched_as import check_precision
from trainer.run.preflight import check_resumable
from trainer.run.rewards import Rewards
from trainer.run.rows import load_data
from trainer.run.schedule import check_evaluation, check_max_steps, check_save_steps
from trainer.run.tokenizer import load_tokenizer
from trainer.step.compatibility import check_combination

_TRIED = {UPDATE_SCHEDULE: tried_schedule, PROMPT_SAMPLER: tried_sampler}


class Collected(list[Finding]):
    """Findings, to which every part that cannot be built adds what it says."""

    @contextmanager
    def of(self, topic: str, *, unexplained: Callable[[str, str], Finding] = error) -> Iterator[None]:
        """Turn what is raised inside into findings of ``topic``: a check never ends in a traceback.

        Args:
            unexplained: how grave it is where something else than a refusal is raised: a check that fails is no reason
                to refuse a run.
        """
        try:
            yield
        except ConfigError as fault:
            self.extend(error(problem.path.split(".")[0] or topic, str(problem)) for problem in fault.problems)
        except Refusal as fault:
            self.extend(error(topic, text) for text in str(fault).split("\n\n"))
        except Exception as fault:  # noqa: BLE001 — libraries raise anything at what a user wrote
            first = (str(fault).strip() or "without a message").splitlines()[0]
            self.append(unexplained(topic, f"{type(fault).__name__}: {first}. This came from a library, unexplained."))


def prepared(
    config: RunConfig, spoiled: Collection[str], processes: int, rewards: Rewards, folder: Path, findings: Collected
) -> Subject:
    """``config`` with all that could be built of it; what could not is added to ``findings``.

    Args:
        spoiled: sections of which a setting was refused, so that what depends on them is not judged.
    """
    subject = Subject(config, processes)
    if not {"rewards", "data"} & {*spoiled}:
        _verifiers_and_rows(subject, rewards, folder, findings)
    if "algorithm" not in spoiled:
        _strategies(subject, findings)
    if not {"algorithm", "trl", "num_processes", "model"} & {*spoiled}:
        _arguments(subject, findings)
    if "model" not in spoiled:
        _model(subject, findings)
    return subject


def _verifiers_and_rows(subject: Subject, rewards: Rewards, folder: Path, findings: Collected) -> None:
    built: dict[str, Any] = {}
    for reward in subject.config.rewards:
        with findings.of("rewards"):
            built[reward.label] = rewards.build_verifier(reward.verifier)
    rows: dict[str, Any] = {}
    data = subject.config.data
    for changes in ({"test": None}, {"train": None}):
        part = subject.config.model_copy(update={"data": data.model_copy(update=changes)})
        before = len(findings)
        with findings.of("data"):
            rows |= load_data(part, built, rewards, folder)
        if len(findings) > before:  # without its verifiers, for what is checked of the prompts
            rows |= _rows_alone(part, rewards, folder)
    subject.verifiers, subject.rows = built, rows


def _rows_alone(config: RunConfig, rewards: Rewards, folder: Path) -> dict[str, Any]:
    try:
        return load_data(config, {}, rewards, folder)
    except Refusal:
        return {}


def _strategies(subject: Subject, findings: Collected) -> None:
    given = subject.config.algorithm.strategies
    try:
        subject.strategies = build_strategies(**given)
        return
    except Refusal as together:
        before = len(findings)
        for kind in KINDS:
            if given[kind] is not None:
                with findings.of("algorithm"):
                    _TRIED.get(kind, tried)(find_strategy(kind, given[kind]))
        if len(findings) == before:
            findings.append(error("algorithm", str(together)))


def _arguments(subject: Subject, findings: Collected) -> None:
    config = subject.config
    with findings.of("algorithm"):
        subject.plan = batch_plan(config, subject.processes)
    if subject.plan is None:
        return
    with findings.of("trl"):
        check_precision(config)
    with findings.of("trl"):
        subject.args = planned_config(config, subject.processes, _lacking(config))
    if subject.args is None or subject.strategies is None:
        return
    with findings.of("trl"):
        check_resumable(subject.args)
    with findings.of("algorithm"):
        check_combination(subject.args, subject.strategies, cut=subject.config.algorithm.cut)
    for check in (check_save_steps, check_max_steps, check_evaluation):
        with findings.of("trl"):
            check(subject.args, subject.num_passes)
    if "train" in subject.rows:
        with findings.of("data"):
            check_rows_enough(len(subject.rows["train"]), subject.plan.prompts_per_rollout)


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


def _model(subject: Subject, findings: Collected) -> None:
    name = subject.config.model.name_or_path
    if (fault := folder_fault(name)) is not None:
        findings.append(error("model", f"model.name_or_path = {name!r} {fault}"))
    if fault is not None and not (Path(name) / "config.json").is_file():
        return
    with findings.of("model"):
        subject.settings = model_settings(subject.config)
    if subject.settings is None:
        return
    with findings.of("model"):
        subject.tokenizer, _ = load_tokenizer(subject.config)
    with findings.of("model", unexplained=warning):
        subject.skeleton = skeleton_of(subject.config, subject.settings)
    subject.settings = subject.settings.get_text_config()

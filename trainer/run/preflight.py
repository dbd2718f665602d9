"""What must hold before a model is loaded: the launch, the batches, the checkpoints, the logging."""

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from evenkeel.trainer.algorithms.strategies import Strategies
from evenkeel.trainer.run.config import BatchPlan, RunConfig, quantization_config
from evenkeel.trainer.run.config.trackers import TRACKERS
from evenkeel.trainer.run.data import check_rows_enough
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.launched_as import LaunchError, asked_for, check_device_for, check_precision, on_cpu
from evenkeel.trainer.run.schedule import check_arguments
from evenkeel.trainer.step.compatibility import check_combination


def started_processes() -> int:
    """How many processes the launcher started; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def check_launch(experiment: Experiment) -> None:
    """Refuse what depends on the launch: processes, device, batches, passes, checkpoints, the end."""
    config, args, started = experiment.config, experiment.args, experiment.processes
    if args.world_size != started:
        raise LaunchError(
            f"The launcher started {started} processes, but they form {args.world_size} groups of one: each would "
            f"train alone and overwrite the others. {on_cpu(asked_for())}"
        )
    check_device_for(args.distributed_state)
    check_precision(config)
    quantization_config(config)  # refuses without its package
    for _, check in schedule_checks(config, args, experiment.strategies, experiment.plan, experiment.rows["train"]):
        check()


def schedule_checks(
    config: RunConfig, args: Any, strategies: Strategies, plan: BatchPlan, rows: Any
) -> list[tuple[str, Callable[[], None]]]:
    """Topic and check of what must go together on any machine; ``rows`` to train on, or ``None`` where unknown."""
    passes = strategies.schedule.num_passes
    checks: list[tuple[str, Callable[[], None]]] = [
        ("trl", partial(check_arguments, args, passes)),
        ("algorithm", partial(check_combination, args, strategies, cut=config.algorithm.cut)),
    ]
    if rows is not None:
        checks.append(("data", partial(check_rows_enough, len(rows), plan.prompts_per_rollout)))
    return checks


def force_cpu(config: RunConfig) -> None:
    """Let all processes of a launch on the CPU call their device ``cpu``.

    accelerate would call it ``cpu:0``, and torch 2.13 loads no optimizer state onto a device of that name: no run of
    two processes could be resumed.
    """
    if config.trl.get("use_cpu") or os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes"):
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "cpu")
        finds_no_gpu = "Setting accelerator to CPU"  # where DeepSpeed is installed, at every start
        logging.getLogger("DeepSpeed").addFilter(lambda record: finds_no_gpu not in record.getMessage())


def prepare_logging(config: RunConfig) -> None:
    """Trackers' settings, which they read from the environment."""
    section = config.logging
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for tracker in (tracker for name, tracker in TRACKERS.items() if name in section.report_to):
        project = {} if tracker.project is None else {tracker.project: section.project}
        for variable, value in {**project, **tracker.local}.items():
            os.environ.setdefault(variable, value)
    if "wandb" not in section.report_to:
        return
    import transformers.integrations.integration_utils  # noqa: F401  before the mode is set: it prints a line of it

    given = {"WANDB_ENTITY": section.entity, "WANDB_TAGS": ",".join(section.tags)}
    given |= {"WANDB_MODE": section.wandb_mode, "WANDB_RUN_GROUP": section.group or config.name}
    for variable, text in {**given, "WANDB_QUIET": "true"}.items():  # quiet: its summary would come after ours
        if text:
            os.environ.setdefault(variable, text)
    if os.environ["WANDB_MODE"] != "online":  # offline it says nothing that our last lines do not
        os.environ.setdefault("WANDB_SILENT", "true")

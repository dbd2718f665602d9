"""Checks and settings before a model is loaded: launch, batches, checkpoints, logging."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.trackers import VARIABLES
from evenkeel.trainer.run.data.rows import check_rows_enough
from evenkeel.trainer.run.experiment import Experiment
from evenkeel.trainer.run.heartbeat import HEARTBEAT
from evenkeel.trainer.run.library_errors import in_words
from evenkeel.trainer.run.schedule import check_arguments

_ON_A_CPU = "On a CPU write trl.use_cpu: true, and launch with configs/accelerate/cpu_two_processes.yaml."


def started_processes() -> int:
    """How many processes the launcher started; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def check_launched(args: Any, started: int) -> None:
    """Refuse processes that would train alone, an engine that accelerate leaves out, and DeepSpeed's own precision.

    ``args`` are TRL's; the launcher has ``started`` so many processes.
    """
    state = args.distributed_state
    kind = str(getattr(state.distributed_type, "value", state.distributed_type))
    if started > 1 and (kind == "NO" or args.world_size != started):
        raise Refusal(f"{started} processes were started, and each would train alone. {_ON_A_CPU}", code="launch")
    on_cpu = args.use_cpu or _is_true("ACCELERATE_USE_CPU")
    for engine, is_left_out in (("FSDP", True), ("DEEPSPEED", on_cpu)):
        if _is_true(f"ACCELERATE_USE_{engine}") and kind in ("NO", "MULTI_CPU") and is_left_out:
            raise Refusal(f"accelerate would leave {engine} out on this device. {_ON_A_CPU}", code="launch")
    plugin: Any = getattr(args, "deepspeed_plugin", None)
    for precision in () if plugin is None else ("bf16", "fp16"):
        enabled = plugin.deepspeed_config.get(precision, {}).get("enabled", False)
        if enabled is not (args.mixed_precision == precision):
            what = f"DeepSpeed's file says {precision}.enabled: {enabled}, and the run file {args.mixed_precision}."
            raise Refusal(f"{what} Write auto in DeepSpeed's file.", code="launch")


def _is_true(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes", "y", "on", "t")


def schedule_checks(experiment: Experiment) -> list[tuple[str, Callable[[], None]]]:
    """Section of the run file and check, for what does not depend on the machine."""
    from evenkeel.trainer.step.compatibility import check_combination

    config, args, strategies = experiment.config, experiment.args, experiment.strategies
    return [
        ("trl", partial(check_arguments, args, strategies.schedule.num_passes)),
        ("algorithm", partial(check_combination, args, strategies, config.speed_options)),
        ("algorithm", partial(strategies.read, experiment.rows["train"])),
        ("algorithm", partial(check_one_prompt, config, strategies)),
        ("data", partial(check_rows_enough, len(experiment.rows["train"]), experiment.plan.prompts_per_rollout)),
    ]


def check_one_prompt(config: RunConfig, strategies: Any) -> None:
    """Refuse strategies that add text to prompts, where those are raw."""
    asked = [*strategies.taught, *["revision"] * (strategies.revision is not None)]
    if config.model.raw_prompts and asked:
        what = f"{asked[0]} adds text to a prompt, and a raw one ends where the answer begins."
        instead = "Leave it out, or render prompts by a template."
        raise Refusal(f"{what} {instead}", code="raw-prompts")


def follow_run_file(config: RunConfig) -> str:
    """Make the run file choose the precision, and all processes of a launch on the CPU call their device ``cpu``.

    accelerate would call it ``cpu:0``, and torch 2.13 loads no optimizer state onto a device of that name: no run of
    two processes could be resumed.

    Returns:
        The precision that the launcher asked for; transformers takes it where the run file says neither bf16 nor fp16.
    """
    if config.trl.get("use_cpu") or _is_true("ACCELERATE_USE_CPU"):
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "cpu")
    return os.environ.pop("ACCELERATE_MIXED_PRECISION", "no").lower()


def prepare_logging(config: RunConfig) -> None:
    """Set the environment variables that trackers read."""
    section = config.logging
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for variables in (variables for name, variables in VARIABLES.items() if name in section.report_to):
        for variable, value in variables.items():
            os.environ.setdefault(variable, value)
    if "wandb" not in section.report_to:
        return
    import transformers.integrations.integration_utils  # noqa: F401  before the mode is set: it prints a line of it

    os.environ["WANDB_MODE"] = os.environ.get("WANDB_MODE") or "offline"
    given = {"WANDB_RUN_GROUP": config.name, "WANDB_JOB_TYPE": "train", "WANDB_QUIET": "true"}
    # its defaults: 90 s, and no limit
    given |= {"WANDB_INIT_TIMEOUT": "15", "WANDB_FINISH_TIMEOUT": "60"}
    for variable, text in given.items():
        os.environ.setdefault(variable, text)
    # offline it says nothing that our last lines do not
    if os.environ["WANDB_MODE"] != "online":
        os.environ.setdefault("WANDB_SILENT", "true")


def check_wandb_answers(config: RunConfig) -> None:
    """Refuse a run that W&B's server would not take, within 10 s (``WANDB_HTTP_TIMEOUT``), before a model is loaded."""
    if "wandb" not in config.logging.report_to or os.environ["WANDB_MODE"] != "online":
        return
    import wandb

    HEARTBEAT.enter("Connecting to W&B")
    try:
        wandb.login(verify=True)
    except wandb.Error as error:
        instead = "Set WANDB_MODE=offline and send the run later by `wandb sync`, or set another WANDB_API_KEY."
        raise Refusal(f"Connecting to W&B: {in_words(error)} {instead}", code="launch") from error

"""Refusals of launches under which accelerate, without a word, would not train what the run and the launcher say."""

import os
from typing import Any

from evenkeel.errors import Refusal

_CPU_FILE = "configs/accelerate/cpu_two_processes.yaml"


def asked_for() -> str | None:
    """``DEEPSPEED`` or ``FSDP``, as accelerate's launcher passes it on to the processes; ``None`` = neither."""
    return next((engine for engine in ("DEEPSPEED", "FSDP") if _is_true(f"ACCELERATE_USE_{engine}")), None)


def check_launched(args: Any, started: int) -> None:
    """Refuse processes that would train alone, an engine that accelerate leaves out, and DeepSpeed's own precision.

    Args:
        args: TRL's arguments, before anything is made with them.
        started: processes of the launcher.

    Raises:
        Refusal: saying how to launch instead.
    """
    state, engine = args.distributed_state, asked_for()
    kind = str(getattr(state.distributed_type, "value", state.distributed_type))
    if started > 1 and (kind == "NO" or args.world_size != started):
        raise Refusal(
            f"{started} processes were started for a device that this machine does not have: each would train alone. "
            f"{_on_cpu(engine)}",
            code="launch",
        )
    without_gpus = kind in ("NO", "MULTI_CPU")
    if engine is not None and without_gpus and (engine == "FSDP" or args.use_cpu or _is_true("ACCELERATE_USE_CPU")):
        raise Refusal(
            f"The launcher asks for {engine}, and accelerate leaves it out on {started} process"
            f"{'es' if started > 1 else ''} on this device. {_on_cpu(engine)}",
            code="launch",
        )
    plugin: Any = getattr(args, "deepspeed_plugin", None)
    for precision in () if plugin is None else ("bf16", "fp16"):
        enabled = plugin.deepspeed_config.get(precision, {}).get("enabled", False)
        if enabled is not (args.mixed_precision == precision):
            raise Refusal(
                f"DeepSpeed's file says {precision}.enabled: {enabled}, and the run file trains in "
                f"{args.mixed_precision}. Write auto in DeepSpeed's file, or trl.bf16 and trl.fp16 like it.",
                code="launch",
            )


def _on_cpu(engine: str | None) -> str:
    """How to launch on a CPU, or with an engine."""
    if engine == "DEEPSPEED":
        return (
            "On a CPU DeepSpeed runs with DS_ACCELERATOR=cpu, without ACCELERATE_USE_CPU, and with trl: {use_cpu: "
            "false, bf16: false, ddp_backend: gloo}."
        )
    if engine == "FSDP":
        return f"FSDP needs two GPUs; on a CPU launch plain data-parallel: ACCELERATE_USE_CPU=true with {_CPU_FILE}."
    return f"On a CPU launch with ACCELERATE_USE_CPU=true, {_CPU_FILE} and trl: {{use_cpu: true, bf16: false}}."


def _is_true(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes", "y", "on", "t")

"""Refusals of launches under which accelerate, without a word, would not train what the run and the launcher say."""

import os
from typing import Any

from evenkeel.errors import Refusal

_ON_A_CPU = "On a CPU write trl.use_cpu: true, and launch with configs/accelerate/cpu_two_processes.yaml."


def check_launched(args: Any, started: int) -> None:
    """Refuse processes that would train alone, an engine that accelerate leaves out, and DeepSpeed's own precision.

    Args:
        args: TRL's arguments, before anything is made with them.
        started: processes of the launcher.

    Raises:
        Refusal: saying how to launch instead.
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

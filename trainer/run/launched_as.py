"""Whether what the launcher's file asks for, DeepSpeed or FSDP, is what runs."""

import os
from typing import Any

from rewards.registry import Refusal
from trainer.run.config import RunConfig

_TRUE = ("1", "true", "yes", "y", "on", "t")
_CPU_FILE = "configs/accelerate/cpu_two_processes.yaml"


class LaunchError(Refusal):
    """What was started is not what the run needs: other processes, or W&B without a key."""


def asked_for() -> str | None:
    """``DEEPSPEED`` or ``FSDP``, as accelerate's launcher passes it on to the processes; ``None`` = neither."""
    for engine in ("DEEPSPEED", "FSDP"):
        if _is_true(f"ACCELERATE_USE_{engine}"):
            return engine
    return None


def check_engine_possible(config: RunConfig) -> None:
    """Refuse DeepSpeed or FSDP in a run on the CPU, before accelerate leaves them out in silence.

    Raises:
        LaunchError: naming what asks for the CPU.
    """
    engine = asked_for()
    by = [name for name in ("ACCELERATE_USE_CPU",) if _is_true(name)]
    by += ["trl.use_cpu"] if config.trl.get("use_cpu") else []
    if engine is None or not by:
        return
    raise LaunchError(
        f"The launcher's file asks for {engine}, and {' = true and '.join(by)} = true for the CPU, where "
        f"accelerate would leave {engine} out without a word: the run would be plain data-parallel. {on_cpu(engine)}"
    )


def check_device_for(state: Any) -> None:
    """Refuse processes that accelerate would start without what lets them train together, before anything is made.

    Args:
        state: accelerate's ``PartialState``, which knows the devices, and not yet the engine.

    Raises:
        LaunchError: several processes without a device know nothing of one another, whatever their backend, or FSDP
            was asked for, which accelerate leaves out without a device.
    """
    kind = _kind(state)
    if kind == "NO" and state.num_processes > 1:
        raise LaunchError(
            f"{state.num_processes} processes were started for a device that this machine does not have: their "
            f"gradients would not be added up, and each would train alone. {on_cpu(asked_for())}"
        )
    if asked_for() == "FSDP" and kind in ("NO", "MULTI_CPU"):
        raise LaunchError(_not_what_runs("FSDP", kind, state.num_processes))


def check_engine_runs(accelerator: Any) -> None:
    """Refuse a run whose accelerator is not of the kind that the launcher's file asks for.

    Raises:
        LaunchError: DeepSpeed or FSDP was asked for, and another kind runs.
    """
    engine, runs = asked_for(), _kind(accelerator)
    if engine is not None and runs != engine:
        raise LaunchError(_not_what_runs(engine, runs, accelerator.num_processes))


def _kind(state: Any) -> str:
    return str(getattr(state.distributed_type, "value", state.distributed_type))


def _not_what_runs(engine: str, runs: str, processes: int) -> str:
    return (
        f"The launcher's file asks for {engine}, and what runs is {runs} on {processes} process"
        f"{'es' if processes > 1 else ''}: parameters and optimizer would not be divided. On one GPU launch with "
        f"configs/accelerate/one_gpu.yaml, on several with --num_processes 2 or more. {on_cpu(engine)}"
    )


def on_cpu(engine: str | None) -> str:
    """How to launch several processes without a GPU; what is right for plain data-parallel is wrong for the others."""
    if engine == "DEEPSPEED":
        return (
            "On a CPU DeepSpeed runs with DS_ACCELERATOR=cpu, without ACCELERATE_USE_CPU, and with trl: {use_cpu: "
            "false, bf16: false, ddp_backend: gloo}."
        )
    if engine == "FSDP":
        return f"FSDP needs GPUs; on a CPU launch plain data-parallel: ACCELERATE_USE_CPU=true with {_CPU_FILE}."
    return f"On a CPU launch with ACCELERATE_USE_CPU=true, {_CPU_FILE} and trl: {{use_cpu: true, bf16: false}}."


def _is_true(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in _TRUE

"""Whether what the launcher's file asks for, DeepSpeed or FSDP, is what runs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig

_TRUE = ("1", "true", "yes", "y", "on", "t")
_CPU_FILE = "configs/accelerate/cpu_two_processes.yaml"


def asked_for() -> str | None:
    """``DEEPSPEED`` or ``FSDP``, as accelerate's launcher passes it on to the processes; ``None`` = neither."""
    for engine in ("DEEPSPEED", "FSDP"):
        if _is_true(f"ACCELERATE_USE_{engine}"):
            return engine
    return None


def check_variables() -> None:
    """Refuse variables of accelerate's that it would only fail at, with a traceback.

    Raises:
        Refusal: naming the variable.
    """
    import torch
    from accelerate.utils import DynamoBackend

    device, backend = (os.environ.get(f"ACCELERATE_{name}") for name in ("TORCH_DEVICE", "DYNAMO_BACKEND"))
    try:
        torch.device(device or "cpu")
    except RuntimeError as error:
        raise Refusal(
            f"ACCELERATE_TORCH_DEVICE = {device!r} is not a device of torch. Unset it, or write cpu or cuda.",
            code="launch",
        ) from error
    backends = [each.value.lower() for each in DynamoBackend]
    if backend and backend.lower() not in backends:
        raise Refusal(
            f"ACCELERATE_DYNAMO_BACKEND = {backend!r} is none of {', '.join(backends)}. Unset it, or write no.",
            code="launch",
        )


def check_engine_possible(config: RunConfig) -> None:
    """Refuse DeepSpeed or FSDP in a run on the CPU, before accelerate leaves them out in silence.

    Raises:
        Refusal: naming what asks for the CPU.
    """
    check_variables()
    engine = asked_for()
    by = [name for name in ("ACCELERATE_USE_CPU",) if _is_true(name)]
    by += ["trl.use_cpu"] if config.trl.get("use_cpu") else []
    if engine is None or not by:
        return
    raise Refusal(
        f"The launcher's file asks for {engine}, and {' = true and '.join(by)} = true for the CPU, where "
        f"accelerate would leave {engine} out without a word: the run would be plain data-parallel. {on_cpu(engine)}",
        code="launch",
    )


def check_device_for(state: Any) -> None:
    """Refuse processes that accelerate would start without what lets them train together, before anything is made.

    Args:
        state: accelerate's ``PartialState``, which knows the devices, and not yet the engine.

    Raises:
        Refusal: several processes without a device know nothing of one another, whatever their backend, or FSDP
            was asked for, which accelerate leaves out without a device.
    """
    kind = _kind(state)
    if kind == "NO" and state.num_processes > 1:
        raise Refusal(
            f"{state.num_processes} processes were started for a device that this machine does not have: their "
            f"gradients would not be added up, and each would train alone. {on_cpu(asked_for())}",
            code="launch",
        )
    if asked_for() == "FSDP" and kind in ("NO", "MULTI_CPU"):
        raise Refusal(_not_what_runs("FSDP", kind, state.num_processes), code="launch")


def check_precision(config: RunConfig) -> None:
    """Refuse a launcher that says another precision than the run file.

    Where the file says neither bf16 nor fp16, transformers takes the launcher's in silence. A launcher's ``no`` is its
    default, and the file's word counts.

    Raises:
        Refusal: naming both.
    """
    wanted = "fp16" if config.trl.get("fp16") else "no" if config.trl.get("bf16") is False else "bf16"
    by_default = wanted == "bf16" and config.trl.get("bf16") is None
    written = "trl says nothing of bf16, whose default is true" if by_default else _PRECISIONS[wanted][0]
    for source, given in _precisions_given():
        if given == wanted or (given == "no" and source == _PRECISION):
            continue
        if given not in _PRECISIONS:
            raise Refusal(
                f"{source} = {given!r} is none of {', '.join(_PRECISIONS)}. Write one of them.", code="launch"
            )
        what = "the run would be trained in it" if wanted == "no" else "only one of the two can be right"
        raise Refusal(
            f"The run file and the launcher contradict each other: {written}, and {source} = {given}; {what}. Write "
            f"trl: {{{_PRECISIONS[given][1]}}}, or launch with {wanted}: mixed_precision: {_PRECISIONS[wanted][2]} in "
            f"the launcher's file (--mixed_precision {wanted} on its command line).",
            code="launch",
        )


_PRECISION = "ACCELERATE_MIXED_PRECISION"
"""How accelerate's launcher passes on ``mixed_precision`` of its file, or of its command line."""
_PRECISIONS = {
    "no": ("trl.bf16 = false", "bf16: false", '"no"'),
    "fp16": ("trl.fp16 = true", "fp16: true, bf16: false", "fp16"),
    "bf16": ("trl.bf16 = true", "bf16: true", "bf16"),
}
"""Precision → how the run file says it, how it would be written, how the launcher's file says it."""


def _precisions_given() -> Iterator[tuple[str, str]]:
    """What a launcher says of the precision, and where: its variable, and the DeepSpeed file that it names."""
    if given := os.environ.get(_PRECISION, "").lower():
        yield _PRECISION, given
    file = Path(os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", ""))
    if not file.is_file():
        return
    try:
        settings = json.loads(file.read_text())
        enabled = {name: settings[name].get("enabled") for name in ("bf16", "fp16") if name in settings}
    except (ValueError, OSError, AttributeError, TypeError):  # DeepSpeed says what is wrong with it
        return
    chosen = [name for name, value in enabled.items() if value is True]
    if chosen or (enabled and not {"auto", None} & {*enabled.values()}):
        yield f"the precision of {file}", chosen[0] if chosen else "no"


def check_engine_runs(accelerator: Any) -> None:
    """Refuse a run whose accelerator is not of the kind that the launcher's file asks for.

    Raises:
        Refusal: DeepSpeed or FSDP was asked for, and another kind runs.
    """
    engine, runs = asked_for(), _kind(accelerator)
    if engine is not None and runs != engine:
        raise Refusal(_not_what_runs(engine, runs, accelerator.num_processes), code="launch")


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

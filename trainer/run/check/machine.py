"""Where a run writes, and whether what it keeps and holds has room there."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from evenkeel.trainer.run.check.context import CheckContext, Finding, error, note, warning
from evenkeel.trainer.run.check.lora import adapted_parameters
from evenkeel.trainer.run.check.memory import GIB, MemoryEstimate, Sharding, Training, memory_per_device
from evenkeel.trainer.run.check.model import size_of
from evenkeel.trainer.run.check.plan import plan_of

_FEWEST_INODES = 100
"""Free inodes without which a run is refused: a checkpoint has about 15 files, a run's directory 30 with its logs."""


def directory_findings(context: CheckContext) -> Iterator[Finding]:
    """An ``output_dir`` in which nothing can be written, and checkpoints for which the disk has no room or inodes."""
    wanted = Path(context.config.output_dir).absolute()
    above = next(path for path in (wanted, *wanted.parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(dir=above):
            pass
    except OSError as fault:
        reason = "it is a file" if above.is_file() else (fault.strerror or str(fault)).lower()
        if (full := _without_inodes(above)) is not None:
            yield full
            return
        yield error(
            "machine",
            "output-dir-not-writable",
            f"output_dir = {context.config.output_dir!r}: nothing can be written in {above}: {reason}. Name a "
            "directory that you may write in.",
        )
        return
    if (full := _without_inodes(above)) is not None:
        yield full
    size, plan = checkpoint_bytes(context), plan_of(context)
    if size is None or plan is None or plan.checkpoints == 0:
        return
    free = shutil.disk_usage(above).free
    words = f"about {in_gib(size)} for one checkpoint (weights and optimizer), and {above} has {in_gib(free)} free"
    if size > free:
        yield error("machine", "disk-too-small", f"The disk is too small: {words}. Name an output_dir on a larger one.")
    elif size * (plan.checkpoints + 1) > free:
        yield warning(
            "machine",
            "disk-will-be-full",
            f"The disk will be full: {plan.checkpoints} checkpoints are kept, {words}. Write trl.save_total_limit: "
            f"{max(1, free // size - 1)}, or raise save_steps.",
        )


def checkpoint_bytes(context: CheckContext) -> int | None:
    """Of one checkpoint: the weights as they are stored, and two values of Adam's for each trained one."""
    if context.skeleton is None:
        return None
    stored = weight_bytes(context)
    if context.config.model.lora is not None:
        return 3 * 4 * (adapted_parameters(context) or 0)
    return 3 * stored * sum(parameter.numel() for parameter in context.skeleton.parameters())


def _without_inodes(place: Path) -> Finding | None:
    """A disk with room and without inodes, of which every file needs one; some file systems do not count them."""
    found = os.statvfs(place)
    if found.f_files == 0 or found.f_favail >= _FEWEST_INODES:
        return None
    return error(
        "machine",
        "too-few-inodes",
        f"The disk has too few inodes: {place} has {found.f_favail} free of {found.f_files:,}, and a run with one "
        f"checkpoint writes up to {_FEWEST_INODES} files (df -i). Delete small files there, or name an output_dir on "
        "another disk.",
    )


def memory_findings(
    context: CheckContext, estimates: Mapping[Sharding, MemoryEstimate], device_bytes: int | None
) -> Iterator[Finding]:
    """More than the device has, however the model is divided; else what is needed."""
    if not estimates:
        return
    device = "process" if context.argument("use_cpu") else "GPU"
    peaks = ", ".join(f"{way} {in_gib(each.peak)}" for way, each in estimates.items())
    words = f"Memory of each {device}, estimated: {peaks}"
    fitting = [way for way, each in estimates.items() if device_bytes is None or each.peak <= device_bytes]
    if device_bytes is not None and not fitting:
        yield warning(
            "machine",
            "too-little-memory",
            f"{words}; it has {in_gib(device_bytes)}. Take a smaller trl.per_device_train_batch_size or "
            "max_completion_length, LoRA (model.lora), more processes under ZeRO-3 or FSDP2, or a smaller model.",
        )
    else:
        has = "" if device_bytes is None else f"; it has {in_gib(device_bytes)}"
        yield note("machine", "memory-estimate", f"{words}{has}.")


_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_UNKNOWN_PROMPT = 512
"""Tokens that a prompt is taken to have where none could be tokenized."""


def memory_estimates(
    context: CheckContext, longest_prompt: int | None, device_bytes: int | None
) -> dict[Sharding, MemoryEstimate]:
    """By the way of dividing the model; only the one in use where it is known, or where one process divides nothing."""
    if context.skeleton is None or context.settings is None or context.plan is None:
        return {}
    trained = None if context.config.model.lora is None else adapted_parameters(context)
    size = size_of(context.skeleton, context.settings, trained)
    training = training_of(context, longest_prompt, device_bytes)
    known = sharding_in_use(context)
    ways = (known,) if known else ("ddp",) if context.processes == 1 else get_args(Sharding)
    return {way: memory_per_device(size, training, way, context.processes) for way in ways}


def training_of(context: CheckContext, longest_prompt: int | None, device_bytes: int | None) -> Training:
    """The settings that take memory. vLLM's share is left out where the device's size is not known."""
    plan, vllm = context.plan, context.argument("use_vllm")
    assert plan is not None
    half = context.is_half_precision
    weights = weight_bytes(context)
    colocated = vllm and context.argument("vllm_mode") == "colocate" and not context.argument("vllm_enable_sleep_mode")
    states, of_state = optimizer_states(str(context.argument("optim")))
    prompt = _UNKNOWN_PROMPT if longest_prompt is None else longest_prompt
    return Training(
        rows=plan.per_device_train_batch_size,
        tokens=prompt + context.argument("max_completion_length"),
        rows_generated=0 if vllm else plan.per_device_train_batch_size * plan.steps_per_generation,
        weight_bytes=weights,
        compute_bytes=2 if half or weights == 2 else 4,
        optimizer_states=states,
        optimizer_bytes=of_state,
        reference=context.argument("beta") != 0 and context.config.model.lora is None,
        checkpointing=bool(context.argument("gradient_checkpointing")),
        vllm_bytes=round(context.argument("vllm_gpu_memory_utilization") * (device_bytes or 0)) if colocated else 0,
        on_gpu=not context.argument("use_cpu"),
    )


def weight_bytes(context: CheckContext) -> int:
    """Of one stored weight: TRL loads float32 by default; ``auto`` is the model's own."""
    dtype: str | None = context.config.model.dtype
    if dtype == "auto":
        dtype = str(getattr(context.settings, "dtype", None) or "float32").removeprefix("torch.")
    return _BYTES.get(dtype or "float32", 4)


def optimizer_states(name: str) -> tuple[int, float | None]:
    """Tensors that an optimizer keeps for a trained one, and bytes of a value in them (``None`` = a weight's)."""
    tensors = (
        0 if name.startswith(("sgd", "adafactor")) else 1 if name.startswith(("lion", "rmsprop", "adagrad")) else 2
    )
    return tensors, 1 if "8bit" in name else 0.5 if "4bit" in name else None


def sharding_in_use(context: CheckContext) -> Sharding | None:
    """As ``trl.deepspeed`` or the launcher says; ``None`` = neither does."""
    stage = os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE")
    file = context.argument("deepspeed")
    if isinstance(file, str) and Path(file).is_file():
        try:
            stage = str(json.loads(Path(file).read_text())["zero_optimization"]["stage"])
        except (ValueError, KeyError, TypeError):
            stage = None
    if stage in ("1", "2", "3"):
        ways: dict[str, Sharding] = {"1": "zero1", "2": "zero2", "3": "zero3"}
        return ways[stage]
    if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true":
        return "fsdp2"
    return "ddp" if context.here else None


def device_memory(context: CheckContext) -> int | None:
    """Bytes of the device that the run is to use: of the first GPU, or of this machine's memory a process's share."""
    import torch

    if not context.argument("use_cpu"):
        return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // context.processes


def in_gib(size: int) -> str:
    """Bytes as text."""
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 1024**2:.0f} MiB"

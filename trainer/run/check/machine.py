"""The machine that a run asks for: a GPU, vLLM, and room for its checkpoints and its memory."""

import os
import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from evenkeel.errors import Problem
from evenkeel.trainer.run.check.context import CheckContext
from evenkeel.trainer.run.check.memory import GIB, MemoryEstimate, ModelSize, Sharding, Training, memory_per_device


def machine_problems(context: CheckContext) -> Iterator[Problem]:
    """A missing GPU or vLLM."""
    import torch

    if not context.config.argument("use_cpu") and not torch.cuda.is_available():
        what = "is not true, and torch finds no GPU here: what depends on one is not checked."
        yield Problem(("trl", "use_cpu"), what, code="no-gpu", severity="warning")
    if context.config.argument("use_vllm") and find_spec("vllm") is None:
        yield Problem(("trl", "use_vllm"), "needs vLLM, which is not installed.", "Install extra vllm.", code="no-vllm")


def disk_problems(context: CheckContext, size: ModelSize) -> Iterator[Problem]:
    """No room for a checkpoint: the trained weights in their stored dtype, and Adam's two moments."""
    wanted = Path(context.config.output_dir).absolute()
    above = next(path for path in (wanted, *wanted.parents) if path.exists())
    one, free = 3 * size.trained * _weight_bytes(context), shutil.disk_usage(above).free
    if one > free and context.config.argument("save_strategy") != "no":
        what = f"has {in_gib(free)} free, and a checkpoint takes {in_gib(one)}."
        yield Problem(("output_dir",), what, code="disk-too-small")


def memory_problems(estimates: Mapping[Sharding, MemoryEstimate], device_bytes: int | None) -> Iterator[Problem]:
    """Estimates that exceed the device's memory with every sharding."""
    if device_bytes is not None and min(each.peak for each in estimates.values()) > device_bytes:
        peaks = ", ".join(f"{way} {in_gib(each.peak)}" for way, each in estimates.items())
        what = f"needs {peaks}, and the device has {in_gib(device_bytes)}."
        place = ("trl", "per_device_train_batch_size")
        yield Problem(place, what, "Take a smaller one.", code="too-little-memory", severity="warning")


def memory_estimates(
    context: CheckContext, size: ModelSize, device_bytes: int | None
) -> dict[Sharding, MemoryEstimate]:
    """Estimates by sharding. vLLM's share is left out where the device's size is not known."""
    plan, argument = context.plan, context.config.argument
    vllm = argument("use_vllm")
    weights, processes = _weight_bytes(context), context.experiment.processes
    colocated = vllm and argument("vllm_mode") == "colocate" and not argument("vllm_enable_sleep_mode")
    options = context.args.accelerator_config.gradient_accumulation_kwargs or {}
    training = Training(
        rows=plan.per_device_train_batch_size,
        tokens=max(context.longest_prompts.values()) + argument("max_completion_length"),
        rows_generated=0 if vllm else plan.per_device_train_batch_size * plan.steps_per_generation,
        weight_bytes=weights,
        compute_bytes=2 if argument("fp16") or weights == 2 or context.config.trl.get("bf16", True) else 4,
        optimizer_bytes=1 if "8bit" in str(argument("optim")) else None,
        reference=argument("beta") != 0 and context.config.model.lora is None,
        checkpointing=bool(argument("gradient_checkpointing")),
        vllm_bytes=round(argument("vllm_gpu_memory_utilization") * (device_bytes or 0)) if colocated else 0,
        on_gpu=not argument("use_cpu"),
        microbatches=1 if options.get("sync_each_batch") else plan.gradient_accumulation_steps,
    )
    ways = ("ddp",) if processes == 1 else get_args(Sharding)
    return {way: memory_per_device(size, training, way, processes) for way in ways}


def _weight_bytes(context: CheckContext) -> int:
    """Bytes of one stored weight: TRL loads float32 by default; ``auto`` is the model's own dtype."""
    dtype = context.config.model.dtype or "float32"
    return 2 if "16" in (str(context.text_settings.dtype) if dtype == "auto" else dtype) else 4


def device_memory(context: CheckContext) -> int | None:
    """Bytes of the first GPU, or on the CPU one process's share of the memory; ``None`` where a GPU is missing."""
    import torch

    if not context.config.argument("use_cpu"):
        return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // context.experiment.processes


def in_gib(size: int) -> str:
    """Bytes as text."""
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 1024**2:.0f} MiB"

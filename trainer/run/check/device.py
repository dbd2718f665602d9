"""The memory estimate of a run, from its configuration and its model's shape."""

import json
import os
from pathlib import Path
from typing import get_args

from trainer.run.check.lora import adapted_parameters
from trainer.run.check.memory import GIB, MemoryEstimate, Sharding, Training, memory_per_device
from trainer.run.check.model import size_of
from trainer.run.check.subject import Subject

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_UNKNOWN_PROMPT = 512
"""Tokens that a prompt is taken to have where none could be tokenized."""


def memory_estimates(
    subject: Subject, longest_prompt: int | None, device_bytes: int | None
) -> dict[Sharding, MemoryEstimate]:
    """By the way of dividing the model; only the one in use where it is known, or where one process divides nothing."""
    if subject.skeleton is None or subject.settings is None or subject.plan is None:
        return {}
    trained = None if subject.config.model.lora is None else adapted_parameters(subject)
    size = size_of(subject.skeleton, subject.settings, trained)
    training = training_of(subject, longest_prompt, device_bytes)
    known = sharding_in_use(subject)
    ways = (known,) if known else ("ddp",) if subject.processes == 1 else get_args(Sharding)
    return {way: memory_per_device(size, training, way, subject.processes) for way in ways}


def training_of(subject: Subject, longest_prompt: int | None, device_bytes: int | None) -> Training:
    """The settings that take memory. vLLM's share is left out where the device's size is not known."""
    plan, vllm = subject.plan, subject.argument("use_vllm")
    assert plan is not None
    half = bool(subject.config.trl.get("bf16", True) or subject.argument("fp16"))
    weights = weight_bytes(subject)
    colocated = vllm and subject.argument("vllm_mode") == "colocate" and not subject.argument("vllm_enable_sleep_mode")
    states, of_state = optimizer_states(str(subject.argument("optim")))
    prompt = _UNKNOWN_PROMPT if longest_prompt is None else longest_prompt
    return Training(
        rows=plan.per_device_train_batch_size,
        tokens=prompt + subject.argument("max_completion_length"),
        rows_generated=0 if vllm else plan.per_device_train_batch_size * plan.steps_per_generation,
        weight_bytes=weights,
        compute_bytes=2 if half or weights == 2 else 4,
        optimizer_states=states,
        optimizer_bytes=of_state,
        reference=subject.argument("beta") != 0 and subject.config.model.lora is None,
        checkpointing=bool(subject.argument("gradient_checkpointing")),
        vllm_bytes=round(subject.argument("vllm_gpu_memory_utilization") * (device_bytes or 0)) if colocated else 0,
        on_gpu=not subject.argument("use_cpu"),
    )


def weight_bytes(subject: Subject) -> int:
    """Of one stored weight: TRL loads float32 where nothing else is said; ``auto`` is the model's own."""
    dtype: str | None = subject.config.model.dtype
    if dtype == "auto":
        dtype = str(getattr(subject.settings, "dtype", None) or "float32").removeprefix("torch.")
    return _BYTES.get(dtype or "float32", 4)


def optimizer_states(name: str) -> tuple[int, float | None]:
    """Tensors that an optimizer keeps for a trained one, and bytes of a value in them (``None`` = a weight's)."""
    tensors = (
        0 if name.startswith(("sgd", "adafactor")) else 1 if name.startswith(("lion", "rmsprop", "adagrad")) else 2
    )
    return tensors, 1 if "8bit" in name else 0.5 if "4bit" in name else None


def sharding_in_use(subject: Subject) -> Sharding | None:
    """As ``trl.deepspeed`` or the launcher says; ``None`` = neither does."""
    stage = os.environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE")
    file = subject.argument("deepspeed")
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
    return "ddp" if subject.here else None


def device_memory(subject: Subject) -> int | None:
    """Bytes of the device that the run is to use: of the first GPU, or of this machine's memory a process's share."""
    import torch

    if not subject.argument("use_cpu"):
        return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // subject.processes


def in_gib(size: int) -> str:
    """Bytes in words."""
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 1024**2:.0f} MiB"

"""Where a run writes, and whether what it keeps and holds has room there; devices and engines that it asks for."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from evenkeel.errors import Problem, Severity
from evenkeel.trainer.run.check.context import CheckContext
from evenkeel.trainer.run.check.memory import GIB, MemoryEstimate, ModelSize, Sharding, Training, memory_per_device
from evenkeel.trainer.run.check.plan import plan_of

SUPPORTED = ((0, 22, 0), (0, 31, 0))
"""The versions of vLLM that TRL 1.16 supports, the first and the last; a test reads them in TRL."""


def machine_problems(context: CheckContext) -> Iterator[Problem]:
    """An ``output_dir`` in which nothing can be written; a GPU, vLLM or token of the hub that is not there."""
    import torch

    wanted = Path(context.config.output_dir).absolute()
    above = next(path for path in (wanted, *wanted.parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(dir=above):
            pass
    except OSError as fault:
        reason = "it is a file" if above.is_file() else (fault.strerror or str(fault)).lower()
        what = f"is {str(wanted)!r}, and nothing can be written in {above}: {reason}."
        yield Problem(("output_dir",), what, "Name another.", code="output-dir-not-writable")
    if not context.argument("use_cpu") and not torch.cuda.is_available():
        what = "is not true, and this machine has no GPU that torch can use: what depends on one is not checked."
        yield Problem(("trl", "use_cpu"), what, code="no-gpu", severity="warning")
    if context.argument("use_vllm"):
        yield from _engine()
    if context.argument("push_to_hub"):
        from huggingface_hub import get_token

        if get_token() is None:
            what = "is true, and no token of the hub is set."
            yield Problem(("trl", "push_to_hub"), what, "Set HF_TOKEN, or run `hf auth login`.", code="no-hub-token")


def _engine() -> Iterator[Problem]:
    """vLLM is absent, or of a version that takes weights through other calls than TRL's."""
    try:
        found = version("vllm") if find_spec("vllm") is not None else None
    except PackageNotFoundError:  # under another name, such as that of a build for the CPU
        return
    first, last = (".".join(map(str, release)) for release in SUPPORTED)
    release = tuple(map(int, re.findall(r"\d+", found or "0")[:3]))
    if not SUPPORTED[0] <= release <= SUPPORTED[1]:
        what = f"is true, and TRL needs vLLM {first} to {last}; here is {found or 'none'}."
        instead = "Install the extra: pip install -e '.[vllm]' -c constraints.txt; or write use_vllm: false."
        yield Problem(("trl", "use_vllm"), what, instead, code="vllm-version")


def disk_problems(context: CheckContext, size: ModelSize) -> Iterator[Problem]:
    """Checkpoints for which the disk has no room: the weights as they are stored, and two values of Adam's."""
    wanted = Path(context.config.output_dir).absolute()
    above = next(path for path in (wanted, *wanted.parents) if path.exists())
    one, plan, free = 3 * size.trained * weight_bytes(context), plan_of(context), shutil.disk_usage(above).free
    if one * (plan.checkpoints + (one <= free)) > free:
        words = f"about {in_gib(one)} for one checkpoint, {plan.checkpoints} are kept, and {in_gib(free)} are free."
        instead = "Name an output_dir on a larger disk, or write trl.save_total_limit."
        grave: Severity = "error" if plan.checkpoints and one > free else "warning"
        what = f"is on a disk that is too small: {words}"
        yield Problem(("output_dir",), what, instead, code="disk-too-small", severity=grave)


def memory_problems(
    context: CheckContext, estimates: Mapping[Sharding, MemoryEstimate], device_bytes: int | None
) -> Iterator[Problem]:
    """More than the device has, however the model is divided."""
    if device_bytes is None or not estimates or min(each.peak for each in estimates.values()) <= device_bytes:
        return
    peaks = ", ".join(f"{way} {in_gib(each.peak)}" for way, each in estimates.items())
    device = "process" if context.argument("use_cpu") else "GPU"
    what = f"needs more memory than a {device} has, {in_gib(device_bytes)}: {peaks}."
    instead = "Take a smaller one or max_completion_length, model.lora, or more processes under ZeRO-3."
    yield Problem(("trl", "per_device_train_batch_size"), what, instead, code="too-little-memory", severity="warning")


_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_UNKNOWN_PROMPT = 512
"""Tokens that a prompt is taken to have where none could be tokenized."""


def memory_estimates(
    context: CheckContext, size: ModelSize, longest_prompt: int | None, device_bytes: int | None
) -> dict[Sharding, MemoryEstimate]:
    """By the way of dividing the model; only the one in use where it is known, or where one process divides nothing."""
    training = training_of(context, longest_prompt, device_bytes)
    known, processes = sharding_in_use(context), context.experiment.processes
    ways = (known,) if known else ("ddp",) if processes == 1 else get_args(Sharding)
    return {way: memory_per_device(size, training, way, processes) for way in ways}


def training_of(context: CheckContext, longest_prompt: int | None, device_bytes: int | None) -> Training:
    """The settings that take memory. vLLM's share is left out where the device's size is not known."""
    plan, vllm = context.plan, context.argument("use_vllm")
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
        dtype = str(getattr(context.text_settings, "dtype", None) or "float32").removeprefix("torch.")
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
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // context.experiment.processes


def in_gib(size: int) -> str:
    """Bytes as text."""
    return f"{size / GIB:.1f} GiB" if size >= GIB / 10 else f"{size / 1024**2:.0f} MiB"

"""Where a run writes, and whether what it keeps and holds has room there."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainer.run.check.device import in_gib, weight_bytes
from trainer.run.check.finding import Finding, error, note, warning
from trainer.run.check.lora import adapted_parameters
from trainer.run.check.memory import MemoryEstimate, Sharding
from trainer.run.check.plan import plan_of
from trainer.run.check.subject import Subject

_FEWEST_INODES = 100
"""Free inodes without which a run is refused: a checkpoint has about 15 files, a run's directory 30 with its logs."""


def directory_findings(subject: Subject) -> Iterator[Finding]:
    """An ``output_dir`` in which nothing can be written, and checkpoints for which the disk has no room or inodes."""
    wanted = Path(subject.config.output_dir).absolute()
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
            f"output_dir = {subject.config.output_dir!r}: nothing can be written in {above}: {reason}. Name a "
            "directory that you may write in.",
        )
        return
    yield from _disk(subject, above)


def checkpoint_bytes(subject: Subject) -> int | None:
    """Of one checkpoint: the weights as they are stored, and two values of Adam's for each trained one."""
    if subject.skeleton is None:
        return None
    stored = weight_bytes(subject)
    if subject.config.model.lora is not None:
        return 3 * 4 * (adapted_parameters(subject) or 0)
    return 3 * stored * sum(parameter.numel() for parameter in subject.skeleton.parameters())


def _without_inodes(place: Path) -> Finding | None:
    """A disk with room and without inodes, of which every file needs one; some file systems do not count them."""
    found = os.statvfs(place)
    if found.f_files == 0 or found.f_favail >= _FEWEST_INODES:
        return None
    return error(
        "machine",
        f"The disk has too few inodes: {place} has {found.f_favail} free of {found.f_files:,}, and a run with one "
        f"checkpoint writes up to {_FEWEST_INODES} files (df -i). Delete small files there, or name an output_dir on "
        "another disk.",
    )


def _disk(subject: Subject, place: Path) -> Iterator[Finding]:
    if (full := _without_inodes(place)) is not None:
        yield full
    size, plan = checkpoint_bytes(subject), plan_of(subject)
    if size is None or plan is None or plan.checkpoints == 0:
        return
    free = shutil.disk_usage(place).free
    words = f"about {in_gib(size)} for one checkpoint (weights and optimizer), and {place} has {in_gib(free)} free"
    if size > free:
        yield error("machine", f"The disk is too small: {words}. Name an output_dir on a larger one.")
    elif size * (plan.checkpoints + 1) > free:
        yield warning(
            "machine",
            f"The disk will be full: {plan.checkpoints} checkpoints are kept, {words}. Write trl.save_total_limit: "
            f"{max(1, free // size - 1)}, or raise save_steps.",
        )


def memory_findings(
    subject: Subject, estimates: Mapping[Sharding, MemoryEstimate], device_bytes: int | None
) -> Iterator[Finding]:
    """More than the device has, however the model is divided; else what is needed."""
    if not estimates:
        return
    device = "process" if subject.argument("use_cpu") else "GPU"
    peaks = ", ".join(f"{way} {in_gib(each.peak)}" for way, each in estimates.items())
    words = f"memory a {device}, an estimate: {peaks}"
    fitting = [way for way, each in estimates.items() if device_bytes is None or each.peak <= device_bytes]
    if device_bytes is not None and not fitting:
        yield warning(
            "machine",
            f"The {words}; it has {in_gib(device_bytes)}. Take a smaller trl.per_device_train_batch_size or "
            "max_completion_length, LoRA (model.lora), more processes under ZeRO-3 or FSDP2, or a smaller model.",
        )
    else:
        has = "" if device_bytes is None else f"; it has {in_gib(device_bytes)}"
        yield note("machine", f"The {words}{has}.")

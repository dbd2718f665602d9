"""A checkpoint that does not fit on its disk is left out and said; the older one stays, and training goes on.

transformers stops with half a checkpoint in place, and the steps since the whole one are lost.
"""

import errno
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # the last: a disk with faults becomes read-only
_FULL_WORDS = (
    "no space left",
    "read-only file system",
    "quota exceeded",
    "file too large",
    "file write failed",  # torch's writer, of whatever kept it
    "failed writing file",
    "unexpected pos",  # and when it closes the file
    *(f"os error {number}" for number in _FULL),  # safetensors
)
SMALL_FILES = 1 << 20
"""Bytes beside weights and optimizer: the tokenizer, the random states, the trainer's own state, the manifest."""


def is_full(error: BaseException | None) -> bool:
    """Whether ``error``, or what it was raised from, says that a disk or quota is full."""
    while error is not None:
        if getattr(error, "errno", None) in _FULL or any(words in str(error).lower() for words in _FULL_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def disk_of(path: Path) -> tuple[Path, int]:
    """Where the file system that holds ``path`` is mounted, and its free bytes for this user."""
    place = path.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    while not os.path.ismount(place):
        place = place.parent
    return place, free


def checkpoint_bytes(trainer: Any) -> int:
    """What a checkpoint takes: the weights that are saved, the optimizer's tensors, and the small files beside."""
    adapter = hasattr(trainer.accelerator.unwrap_model(trainer.model), "peft_config")
    weights = (weight for weight in trainer.model.parameters() if weight.requires_grad or not adapter)
    state = getattr(getattr(trainer, "optimizer", None), "state", {})
    moments = (value for each in state.values() for value in each.values() if isinstance(value, torch.Tensor))
    sharded = trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled
    local = sum(tensor.nbytes for tensor in (*weights, *moments))
    return local * (trainer.accelerator.num_processes if sharded else 1) + SMALL_FILES


class DiskGuard:
    """To be mixed in front of TRL's trainer: see this module. Without ``watches_disk`` it does nothing.

    What does not fit by the count of free bytes is not begun. What fails while it is written, at a quota for instance,
    is deleted; all ranks decide alike.

    Attributes:
        watches_disk: whether it does.
        tell: what prints a message for the user.
        left_out: the step whose checkpoint was left out last.
    """

    watches_disk: bool = False
    tell: Callable[[str], None] = staticmethod(warnings.warn)
    left_out: int | None = None
    _unwritten: Exception | None = None
    _saving: bool = False

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        trainer: Any = self
        save = super()._save_checkpoint  # type: ignore[misc]
        if not self.watches_disk:
            save(model, trial)
            return
        folder = Path(trainer.args.output_dir) / f"checkpoint-{trainer.state.global_step}"
        needed, (disk, free) = checkpoint_bytes(trainer), disk_of(folder)
        self._unwritten, self._saving = None, True
        too_small = trainer.any_rank(trainer.args.process_index == 0 and needed > free)
        try:
            if not too_small:
                save(model, trial)
        except Exception as error:
            if not is_full(error):
                raise
            self._unwritten = error
        finally:
            self._saving = False
        if too_small or trainer.any_rank(self._unwritten is not None):
            self._leave_out(folder, needed, disk, disk_of(folder)[1] if self._unwritten else free)

    def save_model(self, *positional: Any, **keywords: Any) -> None:
        self._written(super().save_model, *positional, **keywords)  # type: ignore[misc]

    def _save_optimizer_and_scheduler(self, *positional: Any, **keywords: Any) -> None:
        self._written(super()._save_optimizer_and_scheduler, *positional, **keywords)  # type: ignore[misc]

    def _save_rng_state(self, *positional: Any, **keywords: Any) -> None:
        self._written(super()._save_rng_state, *positional, **keywords)  # type: ignore[misc]

    def _written(self, save: Callable[..., None], *positional: Any, **keywords: Any) -> None:
        """Call ``save``; a full disk is remembered alone: the other ranks are on their way to the next collective."""
        if self._unwritten is not None:
            return
        try:
            save(*positional, **keywords)
        except Exception as error:
            if not self._saving or not is_full(error):
                raise
            self._unwritten = error

    def _leave_out(self, folder: Path, needed: int, disk: Path, free: int) -> None:
        trainer: Any = self
        self.left_out = trainer.state.global_step
        if trainer.args.process_index == 0:
            shutil.rmtree(folder, ignore_errors=True)
            self.tell(_left_out_words(folder, needed, disk, free, self._unwritten, trainer.args))
        trainer.accelerator.wait_for_everyone()


def _left_out_words(folder: Path, needed: int, disk: Path, free: int, error: Exception | None, args: Any) -> str:
    older = sorted(folder.parent.glob("checkpoint-*/manifest.json"), key=lambda path: path.stat().st_mtime)
    counts = older[-1].parent.name if older else "the run's beginning"
    failed = f" Writing it failed: {type(error).__name__}: {str(error).splitlines()[0][:200]}." if error else ""
    return (
        f"{folder.name} was not saved: it needs about {needed:,} bytes and the disk mounted at {disk} has {free:,} "
        f"free.{failed} {counts} is what counts, and training goes on to the next save. Delete what is not needed on "
        f"{disk}; the fewest checkpoints are kept with trl.save_total_limit: 1, and it still takes room for two."
    )

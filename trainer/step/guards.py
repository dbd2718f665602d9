"""What ends a run although nothing is wrong with its settings: non-finite losses, full disks, exhausted memory.

- A loss or gradient that is not finite is seen before the optimizer steps, kept with its batch, and left out.
  transformers logs such a loss as the mean of those before it and lets the optimizer step: the weights become NaN, the
  next checkpoint holds them, and a resume starts from them.
- A checkpoint that does not fit on its disk is left out with a message; the older one stays, and training goes on.
  transformers stops with half a checkpoint in place, and the steps since the whole one are lost.
- Where memory runs out, the message names the phase and the setting that makes that phase smaller.
"""

import errno
import math
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evenkeel.trainer.step.metrics import Means
from evenkeel.trainer.step.options import Guards
from evenkeel.trainer.step.phases import Phases
from evenkeel.trainer.step.setup import Position, Ranks

SKIPPED = "steps left out"


class FaultError(RuntimeError):
    """What ends a run although nothing is wrong with its settings: the message says what was kept and what to do.

    Attributes:
        code: the kind of fault: ``not-finite``, ``out-of-memory``, ``engine-disagreement``, ``provenance``.
        of_one_rank: the other ranks know nothing of it.
    """

    def __init__(self, message: str, *, code: str = "not-finite", of_one_rank: bool = False) -> None:
        super().__init__(message)
        self.code, self.of_one_rank = code, of_one_rank


@dataclass(frozen=True)
class Fault:
    """An optimizer step that must not be made.

    Attributes:
        losses: of its micro-batches.
        norm: of its gradient; NaN = unknown.
        sum_before, means_before: the summed loss and what was measured, before its first micro-batch.
    """

    losses: list[float]
    norm: float
    sum_before: torch.Tensor
    means_before: Means


class FaultGuard:
    """An optimizer step with a non-finite loss or gradient norm does not happen.

    Its batch, losses, norm, seed and random states go to ``<folder>/step-<N>/rank-<R>.pt``, N the step that was not
    made (from 1), and the weights beside it where the run stops, unless ranks share them. Then the gradients are
    deleted, so that the optimizer has nothing to do; up to ``max_skipped`` times, after which `FaultError` is raised on
    all ranks, before anything is saved; a resumed run continues the count.

    Under fp16 the loss scaler itself skips a step whose norm overflows: there only the loss
    counts. Under DeepSpeed the engine has made its step when the norm is known: every fault stops the run.

    Args:
        counts: how many steps were left out, under `SKIPPED`, also before the run was resumed.
        norm_is_scaled: fp16 with a loss scale.
        step_is_made: the engine has made its step when the norm is known (DeepSpeed).

    Attributes:
        newest_norm: the gradient norm of the newest optimizer step; NaN where none was computed.
    """

    def __init__(
        self, options: Guards, ranks: Ranks, counts: Counter[str], *, norm_is_scaled: bool, step_is_made: bool
    ) -> None:
        self.options, self.ranks, self.counts = options, ranks, counts
        self.norm_is_scaled, self.step_is_made = norm_is_scaled, step_is_made
        self.newest_norm = math.nan
        self._newest: list[torch.Tensor] = []
        self._before: tuple[torch.Tensor, Means] | None = None

    def begin_training(self) -> None:
        """Forget the losses of an optimizer step that was not finished."""
        self._before, self._newest = None, []

    def before(self, summed_loss: torch.Tensor, means: Means) -> None:
        """Note the loss summed and the means measured so far, before a micro-batch is trained."""
        if self._before is None:  # the first of an optimizer step
            self._before, self._newest = (summed_loss.clone(), means.copy()), []

    def after(self, loss: torch.Tensor) -> None:
        """Note the loss of a micro-batch; read once an optimizer step: reading waits for the device."""
        self._newest.append(loss.detach())

    def find_fault(self, norm: Any) -> Fault | None:
        """What is wrong with the optimizer step that is about to be made, on any rank; a collective."""
        losses = torch.stack(self._newest).tolist()
        self.newest_norm = value = math.nan if norm is None else float(norm)
        bad_norm = norm is not None and not self.norm_is_scaled and not math.isfinite(value)
        before, self._before = self._before, None
        assert before is not None
        if not self.ranks.any(bad_norm or not all(map(math.isfinite, losses))):
            return None
        return Fault(losses, value, *before)

    def leave_out(
        self, fault: Fault, position: Position, evidence: dict[str, Any], save_weights: Callable[[str], None]
    ) -> float:
        """Keep what the optimizer step was made of, each rank its own file; returns how many steps were left out.

        Args:
            evidence: what each rank keeps beside losses, norm, seed and random states.
            save_weights: writes the weights to a folder.

        Raises:
            FaultError: no more steps may be left out.
        """
        folder = self.options.fault_folder / f"step-{position.step + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        states = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
        if (device := self.ranks.device).type != "cpu":
            states[device.type] = torch.get_device_module(device).get_rng_state(device)
        found = {"losses": fault.losses, "grad_norm": fault.norm, "seed": self.options.seed, "random_states": states}
        torch.save({**evidence, **found}, folder / f"rank-{self.ranks.index}.pt")
        skipped = self.counts[SKIPPED]
        if skipped >= self.options.max_skipped or self.step_is_made:
            if not (self.step_is_made or self.ranks.sharded):  # there a rank holds a part of them
                save_weights(str(folder / "weights"))
            raise FaultError(
                f"Optimizer step {position.step + 1} is not finite: losses {', '.join(f'{x:g}' for x in fault.losses)} "
                f"of this rank's micro-batches, gradient norm {fault.norm:g}; {skipped} such steps were left out "
                f"before. Its batch and random states are in {folder}. Resume from the last checkpoint with a lower "
                "trl.learning_rate or trl.max_grad_norm, or leave a few out (stopping.skip_faults; not under "
                "DeepSpeed, which has made the step by then)."
            )
        self.counts[SKIPPED] += 1
        return float(self.counts[SKIPPED])

    def check_weights(self, model: torch.nn.Module, position: Position) -> None:
        """No checkpoint holds a weight that is not finite, whatever made it so; a collective.

        Raises:
            FaultError: one does.
        """
        weights = ((name, _own_part(weight)) for name, weight in model.named_parameters())
        bad = [name for name, weight in weights if weight.is_floating_point() and not weight.isfinite().all()]
        if self.ranks.any(bool(bad)):
            raise FaultError(
                f"After optimizer step {position.step} {len(bad)} of this rank's weights ({', '.join(bad[:3])}) hold "
                "values that are not finite, although every loss and gradient norm was: the steps were too large for "
                "their type. This checkpoint is not written; resume from the one before with a lower trl.learning_rate."
            )


def _own_part(weight: torch.Tensor) -> torch.Tensor:
    """What this rank holds of a weight: a part under ZeRO-3 and FSDP, elsewhere all of it."""
    part: torch.Tensor = getattr(weight, "ds_tensor", weight)  # ZeRO-3 leaves the weight itself empty
    return part.to_local() if hasattr(part, "to_local") else part


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


def is_full(error: BaseException | None) -> bool:
    """Whether ``error``, or what it was raised from, says that a disk or quota is full."""
    while error is not None:
        if getattr(error, "errno", None) in _FULL or any(words in str(error).lower() for words in _FULL_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


class DiskGuard:
    """Leaves out checkpoints that a full disk or quota does not take: what was written of one is deleted.

    All ranks decide alike. transformers deletes old checkpoints as the last part of saving one: a run sets
    ``save_total_limit`` aside and deletes them when the new one is whole.

    Args:
        saves_together: every rank writes its part of the weights and the optimizer, and waits for the others
            (DeepSpeed, FSDP).

    Attributes:
        left_out: the step whose checkpoint was left out last.
    """

    def __init__(self, ranks: Ranks, report: Callable[[str], None], *, saves_together: bool) -> None:
        self.ranks, self.report, self.saves_together = ranks, report, saves_together
        self.left_out: int | None = None
        self._unwritten: Exception | None = None
        self._is_saving = False

    def save(self, save: Callable[[], None], folder: Path, step: int) -> None:
        """Call ``save``, which writes the checkpoint ``folder``; all ranks do."""
        self._unwritten, self._is_saving = None, True
        try:
            save()
        except Exception as error:
            if not is_full(error):
                raise
            self._unwritten = error
        finally:
            self._is_saving = False
        if not self.ranks.any(self._unwritten is not None):
            return
        self.left_out = step
        if self.ranks.is_main:
            shutil.rmtree(folder, ignore_errors=True)
            free = shutil.disk_usage(folder.parent).free
            self.report(
                f"{folder.name} was not saved: its disk is full ({self._unwritten or 'on another rank'}); "
                f"{free:,} bytes are free in {folder.parent} without it. Training goes on to the next save. Make room: "
                "trl.save_total_limit: 1 keeps the fewest checkpoints, and still takes room for two."
            )
        self.ranks.accelerator.wait_for_everyone()

    def written(self, save: Callable[..., None], *positional: Any, **keywords: Any) -> None:
        """Call ``save``, which writes a part of a checkpoint; a full disk is remembered alone: the other ranks are on
        their way to the next collective."""
        if not self._is_saving:
            save(*positional, **keywords)
            return
        if self._unwritten is not None and not self.saves_together:
            return
        try:
            save(*positional, **keywords)
        except Exception as error:
            if not is_full(error):
                raise
            self._unwritten = error


_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "cannot allocate memory")
_ROWS = "trl.per_device_train_batch_size (the optimizer's batch, algorithm.sequences_per_update, stays as it is)"
_SMALLER = {
    "generation": "algorithm.prompts_per_rollout, trl.max_completion_length, trl.vllm_gpu_memory_utilization",
    "reward functions": "algorithm.prompts_per_rollout, and look at what your own verifier keeps",
    "scoring of the rollout batch": f"{_ROWS}, trl.max_completion_length",
    "forward and backward pass": f"{_ROWS}, speed.tokens_per_microbatch; or write trl.gradient_checkpointing: true",
    "optimizer step": "trl.optim (adamw_8bit); or divide it (configs/accelerate/zero2.yaml), or train model.lora",
    "evaluation": "evaluation.batch_size",
    "preparation": "the model; or divide it (configs/accelerate/zero3.yaml), or train model.lora",
}
"""Phase → which settings make it smaller."""


def is_out_of_memory(error: BaseException) -> bool:
    """Of the GPU (`torch.OutOfMemoryError`), of torch's CPU allocator (a plain RuntimeError), or of Python."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError | OSError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


@contextmanager
def memory_errors_explained(ranks: Ranks, phases: Phases, position: Callable[[], Position]) -> Iterator[None]:
    """Inside, where memory runs out, a `FaultError` of this rank says in which phase and what makes it smaller."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason, doing = (str(error).strip() or type(error).__name__).splitlines()[0][:300], phases.doing
        raise FaultError(
            f"Out of memory in the {doing} at optimizer step {position().step + 1} (rank {ranks.index} on "
            f"{ranks.device}): {reason} Lower {_SMALLER[doing]}. The evaluation's may change on --resume; a run with "
            "the others changed starts from the beginning.",
            code="out-of-memory",
            of_one_rank=True,
        ) from error

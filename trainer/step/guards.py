"""What ends a run although nothing is wrong with its settings: non-finite losses, full disks, exhausted memory.

- A loss or gradient that is not finite is seen before the optimizer steps, kept with its batch, and left out.
  transformers logs such a loss as the mean of those before it and lets the optimizer step: the weights become NaN, the
  next checkpoint holds them, and a resume starts from them.
- A checkpoint that does not fit on its disk is left out with a message; the older one stays, and training goes on.
  transformers stops with half a checkpoint in place, and the steps since the whole one are lost.
- Where memory runs out, the message says in which phase, which tensors were the largest, and which setting makes that
  phase smaller.
"""

import errno
import gc
import json
import math
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch

from evenkeel.trainer.step.metrics import Means
from evenkeel.trainer.step.options import Guards
from evenkeel.trainer.step.phases import Phases
from evenkeel.trainer.step.ranks import Ranks
from evenkeel.trainer.step.rollout import Position

SKIPPED = "steps left out"


class FaultError(RuntimeError):
    """What ends a run although nothing is wrong with its settings: the message says what was kept and what to do.

    Attributes:
        of_one_rank: the other ranks know nothing of it.
    """

    of_one_rank: bool = False


class FaultGuard:
    """An optimizer step with a non-finite loss or gradient norm does not happen.

    Its batch, losses, norm, seed, random states and trainer state go to ``<folder>/step-<N>/``, N the step that was not
    made (from 1), and the weights too where the run stops, unless ranks share them. Then the gradients are deleted, so
    that the optimizer has nothing to do; up to ``max_skipped`` times, after which `FaultError` is raised on all ranks,
    before anything is saved; a resumed run continues the count.

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

    def find_fault(self, norm: Any) -> "Fault | None":
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
        self,
        fault: "Fault",
        position: Position,
        evidence: dict[str, Any],
        save_state: Callable[[str], None],
        save_weights: Callable[[str], None],
    ) -> float:
        """Keep what the optimizer step was made of; returned is how many steps were left out.

        Args:
            evidence: what each rank keeps beside losses, norm and random states.
            save_state, save_weights: write the trainer's state to a file, the weights to a folder.

        Raises:
            FaultError: no more steps may be left out.
        """
        kept = self._keep(fault, position, evidence, save_state)
        skipped = self.counts[SKIPPED]
        if skipped >= self.options.max_skipped or self.step_is_made:
            if not (self.step_is_made or self.ranks.sharded):  # there a rank holds a part of them
                save_weights(str(kept / "weights"))
            losses = ", ".join(f"{loss:g}" for loss in fault.losses)
            allowed = f" after {skipped} that were left out" if skipped else ""
            made = (
                "; DeepSpeed had made the step before its norm was known"
                if self.step_is_made
                else ", so it was not made"
            )
            skip = "" if self.step_is_made else "; stopping.skip_faults leaves out a few such steps"
            raise FaultError(
                f"Optimizer step {position.step + 1} is not finite{allowed}: losses {losses} of this rank's "
                f"micro-batches, gradient norm {fault.norm:g}. Such a step makes every weight NaN{made}. Its batch and "
                f"random states are in {kept}. Resume from the last checkpoint with a lower trl.learning_rate or "
                f"trl.max_grad_norm{skip}."
            )
        self.counts[SKIPPED] += 1
        return float(self.counts[SKIPPED])

    def check_weights(self, model: torch.nn.Module, position: Position) -> None:
        """No checkpoint holds a weight that is not finite, whatever made it so; a collective.

        Raises:
            FaultError: one does.
        """
        weights = ((name, own_part(weight)) for name, weight in model.named_parameters())
        bad = [name for name, weight in weights if weight.is_floating_point() and not weight.isfinite().all()]
        if self.ranks.any(bool(bad)):
            named = f" ({', '.join(bad[:3])})" if bad else ""
            raise FaultError(
                f"After optimizer step {position.step} {len(bad)} of this rank's weights{named} hold values that are "
                "not finite, although every loss and gradient norm was: the steps were too large for their type. This "
                "checkpoint is not written; resume from the one before with a lower trl.learning_rate."
            )

    def _keep(
        self, fault: "Fault", position: Position, evidence: dict[str, Any], save_state: Callable[[str], None]
    ) -> Path:
        """Write what the optimizer step was made of; each rank its own file."""
        folder: Path = self.options.fault_folder / f"step-{position.step + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        random_states = {
            "python": random.getstate(),
            "numpy": np.random.get_state(),
            "torch": torch.get_rng_state(),
        }
        if (device := self.ranks.device).type != "cpu":
            random_states[device.type] = torch.get_device_module(device).get_rng_state(device)
        found = {**evidence, "losses": fault.losses, "grad_norm": fault.norm, "random_states": random_states}
        torch.save(found, folder / f"rank-{self.ranks.index}.pt")
        if self.ranks.index == 0:
            words = {"step": position.step + 1, "seed": self.options.seed, "grad_norm": str(fault.norm)}
            words |= {"losses": list(map(str, fault.losses)), "weights": "those of the step before"}
            (folder / "fault.json").write_text(json.dumps(words, indent=2) + "\n")
            save_state(str(folder / "trainer_state.json"))
        return folder


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


def own_part(weight: torch.Tensor) -> torch.Tensor:
    """What this rank holds of a weight: a part under ZeRO-3 and FSDP, elsewhere all of it."""
    part: torch.Tensor = getattr(weight, "ds_tensor", weight)  # ZeRO-3 leaves the weight itself empty
    return part.to_local() if hasattr(part, "to_local") else part


def checkpoint_bytes(model: Any, optimizer: Any, *, is_adapter: bool, weight_shares: int, optimizer_shares: int) -> int:
    """What a checkpoint takes: the weights that are saved, the optimizer's tensors, and the small files beside.

    Args:
        weight_shares, optimizer_shares: ranks that each hold a part; 1 where every rank holds all.
    """
    weights = (own_part(weight) for weight in model.parameters() if weight.requires_grad or not is_adapter)
    state = getattr(optimizer, "state", {})
    moments = (own_part(value) for each in state.values() for value in each.values() if isinstance(value, torch.Tensor))
    weight_bytes, moment_bytes = (sum(tensor.nbytes for tensor in tensors) for tensors in (weights, moments))
    return weight_bytes * weight_shares + moment_bytes * optimizer_shares + SMALL_FILES


class DiskGuard:
    """Writes checkpoints that fit on their disk, and leaves out those that do not.

    What does not fit by the count of free bytes is not begun. What fails while it is written, at a quota for instance,
    is deleted; all ranks decide alike.

    transformers deletes old checkpoints as the last part of saving one: a run sets ``save_total_limit`` aside and
    deletes them when the new one is whole.

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

    def save(self, save: Callable[[], None], folder: Path, needed: int, step: int) -> None:
        """Call ``save``, which writes the checkpoint ``folder`` of so many bytes; all ranks do."""
        disk, free = disk_of(folder)
        self._unwritten, self._is_saving = None, True
        too_small = self.ranks.any(self.ranks.index == 0 and needed > free)
        try:
            if not too_small:
                save()
        except Exception as error:
            if not is_full(error):
                raise
            self._unwritten = error
        finally:
            self._is_saving = False
        if too_small or self.ranks.any(self._unwritten is not None):
            self.left_out = step
            if self.ranks.index == 0:
                shutil.rmtree(folder, ignore_errors=True)
                free = disk_of(folder)[1] if self._unwritten else free
                self.report(_left_out_words(folder, needed, disk, free, self._unwritten))
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


def _left_out_words(folder: Path, needed: int, disk: Path, free: int, error: Exception | None) -> str:
    older = sorted(folder.parent.glob("checkpoint-*/manifest.json"), key=lambda path: path.stat().st_mtime)
    newest = f"{older[-1].parent.name} stays the newest checkpoint" if older else "This run has no checkpoint yet"
    failed = f" Writing it failed: {type(error).__name__}: {str(error).splitlines()[0][:200]}." if error else ""
    return (
        f"{folder.name} was not saved: it needs about {needed:,} bytes and the disk mounted at {disk} has {free:,} "
        f"free.{failed} {newest}, and training continues to the next save. Delete what is not needed on {disk}; the "
        "fewest checkpoints are kept with trl.save_total_limit: 1, which still takes room for two."
    )


SHOWN = 5
_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "cannot allocate memory")
FILE = "out-of-memory.txt"
SAME_EVENT = 120.0
"""Seconds within which another rank's message is about the same."""

KNOBS = {
    "generation": "All completions of a rollout batch are generated together: lower algorithm.prompts_per_rollout or "
    "trl.max_completion_length (is {max_completion_length}), or start more processes; with vLLM in this process lower "
    "trl.vllm_gpu_memory_utilization.",
    "reward functions": "The verifiers and the judged texts share this process's memory: lower "
    "algorithm.prompts_per_rollout, and look at what your own verifier keeps.",
    "scoring of the rollout batch": "So many sequences are scored at once as are trained: lower "
    "trl.per_device_train_batch_size (is {per_device_train_batch_size}) or trl.max_completion_length (is "
    "{max_completion_length}); the optimizer's batch, algorithm.sequences_per_update, stays as it is.",
    "forward and backward pass": "Lower trl.per_device_train_batch_size (is {per_device_train_batch_size}; the "
    "optimizer's batch, algorithm.sequences_per_update, stays as it is), or write speed: {{microbatches: planned, "
    "tokens_per_microbatch: …}}, or trl.gradient_checkpointing: true (is {gradient_checkpointing}).",
    "optimizer step": "The optimizer keeps two numbers a weight beside its gradient: divide them over the GPUs with "
    "configs/accelerate/zero2.yaml, take trl.optim: adamw_8bit (is {optim}), or train an adapter (model.lora).",
    "evaluation": "Lower evaluation.batch_size (is {per_device_eval_batch_size}).",
    "preparation": "The model, a reference model where trl.beta > 0 (is {beta}), and the optimizer must fit together: "
    "configs/accelerate/zero3.yaml divides them over the GPUs, model.lora trains an adapter.",
}
"""Phase → what to write, with the settings in force in place."""


class ExhaustedMemoryError(FaultError):
    """Memory ran out; the message says where and what to turn, and is empty where another rank has said it."""

    of_one_rank = True


@dataclass(frozen=True)
class LargeTensor:
    """One tensor that was alive: the name of a variable that held it where the allocation failed, if one did."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    num_bytes: int

    def __str__(self) -> str:
        size = f"{self.num_bytes / 2**30:.2f} GiB" if self.num_bytes >= 2**28 else f"{self.num_bytes / 2**20:.1f} MiB"
        return f"{self.name} {self.shape} {self.dtype} on {self.device}, {size}"


def is_out_of_memory(error: BaseException) -> bool:
    """Of the GPU (`torch.OutOfMemoryError`), of torch's CPU allocator (a plain RuntimeError), or of Python."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError | OSError) and any(words in str(error).lower() for words in _WORDS)


def largest_tensors(trace: TracebackType | None, number: int = SHOWN) -> list[LargeTensor]:
    """The largest live tensors, views of one storage counted once, with names from the frames of ``trace``."""
    names: dict[int, str] = {}
    while trace is not None:
        names |= {id(value): name for name, value in trace.tb_frame.f_locals.items() if type(value) is torch.Tensor}
        trace = trace.tb_next
    found: dict[int, LargeTensor] = {}
    for each in gc.get_objects():
        if type(each) not in (torch.Tensor, torch.nn.Parameter) or not each.numel() or each.device.type == "meta":
            continue
        kind = "a weight" if type(each) is torch.nn.Parameter else "a tensor"
        storage = each.untyped_storage()
        tensor = LargeTensor(
            names.get(id(each), kind), tuple(each.shape), str(each.dtype)[6:], str(each.device), storage.nbytes()
        )
        known = found.get(storage.data_ptr())
        if known is None or known.name in ("a tensor", "a weight"):
            found[storage.data_ptr()] = tensor
    return sorted(found.values(), key=lambda tensor: -tensor.num_bytes)[:number]


class MemoryGuard:
    """`ExhaustedMemoryError` in place of what is raised where memory ran out.

    The first rank that fails reports at once, because the others wait for it: its message goes to ``folder``, which all
    ranks see, and a rank that finds one there is silent.
    """

    def __init__(self, folder: Path, ranks: Ranks, phases: Phases) -> None:
        self.folder, self.ranks, self.phases = folder, ranks, phases

    @contextmanager
    def watching(self, args: Any, position: Callable[[], Position]) -> Iterator[None]:
        """Inside, the run trains with TRL's settings ``args``."""
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise ExhaustedMemoryError(self._message(error, args, position())) from error

    def _message(self, error: Exception, args: Any, position: Position) -> str:
        settings = {name: getattr(value, "value", value) for name, value in vars(args).items()}
        tensors = "\n".join(f"  {tensor}" for tensor in largest_tensors(error.__traceback__))
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        doing = self.phases.doing
        text = (
            f"Out of memory in the {doing} at optimizer step {position.step + 1} (rank {self.ranks.index} on "
            f"{self.ranks.device}): {reason}\nThe largest tensors alive:\n{tensors}\n"
            f"{KNOBS[doing].format(**settings)}\n"
            "The evaluation's may change on --resume; a run with the others changed starts from the beginning."
        )
        return text if self._is_first_to_say(text) else ""

    def _is_first_to_say(self, text: str) -> bool:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / FILE
        if file.exists() and time.time() - file.stat().st_mtime > SAME_EVENT:
            file.unlink(missing_ok=True)  # of an attempt before
        try:
            with file.open("x") as opened:
                opened.write(text + "\n")
        except FileExistsError:
            return False
        return True

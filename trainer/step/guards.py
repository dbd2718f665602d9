"""Guards against non-finite losses and exhausted memory.

transformers lets the optimizer step on a loss that is not finite: the weights become NaN, also in the next checkpoint.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from evenkeel.trainer.step.options import Guards
from evenkeel.trainer.step.phases import Phases
from evenkeel.trainer.step.setup import Position, Ranks

SKIPPED = "steps left out"


class FaultError(RuntimeError):
    """A run cannot go on; ``of_one_rank``: not all ranks raise the same message.

    Its code is ``not-finite``, ``out-of-memory``, ``engine-disagreement`` or ``provenance``.
    """

    def __init__(self, message: str, *, code: str = "not-finite", of_one_rank: bool = False) -> None:
        super().__init__(message)
        self.code, self.of_one_rank = code, of_one_rank


class FaultGuard:
    """An optimizer step with a non-finite loss or gradient norm does not happen.

    Its batch, losses and norm are saved as ``<folder>/step-<N>/rank-<R>.pt``, N the step that was not made (from 1).
    After ``max_skipped`` such steps the next one stops the run, and its weights are saved too.

    Args:
        counts: steps skipped, under `SKIPPED`, also before the run was resumed.
        norm_is_scaled: fp16, whose loss scaler itself skips a step with such a norm: only the loss is checked.
        step_is_made: DeepSpeed, which has made its step when the norm is known: every fault stops the run.
    """

    def __init__(
        self, options: Guards, ranks: Ranks, counts: Counter[str], *, norm_is_scaled: bool, step_is_made: bool
    ) -> None:
        self.options, self.ranks, self.counts = options, ranks, counts
        self.norm_is_scaled, self.step_is_made = norm_is_scaled, step_is_made
        self._losses: list[torch.Tensor] = []

    def begin_training(self) -> None:
        """Forget the losses of an optimizer step that was not finished."""
        self._losses = []

    def logged_loss(self, loss: torch.Tensor) -> torch.Tensor:
        """``loss`` of a micro-batch, 0 where it is not finite: NaN would stay in transformers' sum of losses.

        The original is kept on the device for `skips_step`, which reads once an optimizer step.
        """
        self._losses.append(loss.detach())
        return loss.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)

    def skips_step(
        self, norm: Any, position: Position, evidence: dict[str, Any], save_weights: Callable[[str], None]
    ) -> bool:
        """Whether the next optimizer step has a fault on any rank and must be skipped; each rank then saves its batch.

        A collective.

        Raises:
            FaultError: no more steps may be skipped.
        """
        losses, self._losses = torch.stack(self._losses).tolist(), []
        value = math.nan if norm is None else float(norm)
        bad_norm = norm is not None and not self.norm_is_scaled and not math.isfinite(value)
        if not self.ranks.any(bad_norm or not all(map(math.isfinite, losses))):
            return False
        folder = self.options.fault_folder / f"step-{position.step + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        torch.save({**evidence, "losses": losses, "grad_norm": value}, folder / f"rank-{self.ranks.index}.pt")
        skipped = self.counts[SKIPPED]
        if skipped >= self.options.max_skipped or self.step_is_made:
            if not (self.step_is_made or self.ranks.sharded):  # then a rank may hold only a part of the weights
                save_weights(str(folder / "weights"))
            raise FaultError(
                f"Optimizer step {position.step + 1} is not finite: losses {[*map('{:g}'.format, losses)]}, "
                f"gradient norm {value:g}; {skipped} such steps were left out before. Its batch is in {folder}. "
                "Resume with a lower trl.learning_rate or trl.max_grad_norm, or write stopping.skip_faults."
            )
        self.counts[SKIPPED] += 1
        return True


_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "cannot allocate memory")
_ROWS = "trl.per_device_train_batch_size"
_SMALLER = {
    "generation": "algorithm.prompts_per_rollout, trl.max_completion_length, trl.vllm_gpu_memory_utilization",
    "reward functions": "algorithm.prompts_per_rollout",
    "scoring of the rollout batch": f"{_ROWS}, trl.max_completion_length",
    "forward and backward pass": f"{_ROWS}, speed.tokens_per_microbatch, or write trl.gradient_checkpointing: true",
    "optimizer step": "trl.optim (adamw_8bit), or train model.lora or with configs/accelerate/zero2.yaml",
    "evaluation": "evaluation.batch_size",
    "preparation": "the model, or train model.lora or with configs/accelerate/zero3.yaml",
}
"""Phase → settings that lower its memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """Out of memory on the GPU (`torch.OutOfMemoryError`), in torch's CPU allocator (RuntimeError), or in Python."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError | OSError) and any(words in str(error).lower() for words in _OUT_OF_MEMORY)


@contextmanager
def memory_errors_explained(ranks: Ranks, phases: Phases, position: Callable[[], Position]) -> Iterator[None]:
    """Inside, exhausted memory raises a `FaultError` that names the phase and settings that lower its memory."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason, doing = (str(error).strip() or type(error).__name__).splitlines()[0][:300], phases.doing
        raise FaultError(
            f"Out of memory in the {doing} at optimizer step {position().step + 1} (rank {ranks.index} on "
            f"{ranks.device}): {reason} Lower {_SMALLER[doing]}.",
            code="out-of-memory",
            of_one_rank=True,
        ) from error

"""Losses and gradients that are no finite number: seen before the optimizer steps, kept with their batch, left out.

transformers logs such a loss as the mean of those before it and lets the optimizer step: the weights become NaN, the
next checkpoint holds them, and a resume goes on with them.
"""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

SKIPPED = "steps left out"


class FaultError(RuntimeError):
    """What ends a run although nothing is wrong with its settings: the message says what was kept and what to do.

    Attributes:
        of_one_rank: the other ranks know nothing of it.
    """

    of_one_rank: bool = False


class FaultGuard:
    """To be mixed in front of TRL's trainer: an optimizer step with a non-finite loss or gradient norm does not happen.

    Its batch, losses, norm, seed, random states and trainer state go to ``<folder>/step-<N>/``, N the step that was not
    made (from 1), and the weights too where the run stops, unless ranks share them. Then
    the gradients are deleted, so that the optimizer has nothing to do; up to ``max_skipped`` times, after which
    `FaultError` is raised on all ranks, before anything is saved; a resumed run goes on counting. Without a
    ``fault_folder`` nothing is watched.

    Under fp16 an overflowing norm is the loss scale's affair, which leaves out the step itself: there only the loss
    counts. Under DeepSpeed the engine has made its step when the norm is known: every fault stops the run.

    Attributes:
        fault_folder: where faults are kept.
        max_skipped: how many steps may be left out.
        newest_norm: the gradient norm of the newest optimizer step; no number where none was computed.
    """

    fault_folder: Path | None = None
    max_skipped: int = 0
    newest_norm: float = math.nan
    _losses: list[float]
    _newest: list[torch.Tensor]
    _sum_before: torch.Tensor | None = None

    @property
    def skipped(self) -> int:
        """How many steps were left out, also before the run was resumed."""
        trainer: Any = self
        number: int = trainer.counts[SKIPPED]
        return number

    def training_step(self, *positional: Any, **keywords: Any) -> torch.Tensor:
        trainer: Any = self
        if self.fault_folder is None:
            return super().training_step(*positional, **keywords)  # type: ignore[misc]
        if self._sum_before is None:  # the first micro-batch of an optimizer step
            self._sum_before, self._newest = trainer._tr_loss.clone(), []
        loss: torch.Tensor = super().training_step(*positional, **keywords)  # type: ignore[misc]
        self._newest.append(loss.detach())  # read once an optimizer step: reading waits for the device
        return loss

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        trainer: Any = self
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)  # type: ignore[misc]
        if self.fault_folder is None:
            return norm
        before, self._sum_before = self._sum_before, None
        self._losses = torch.stack(self._newest).tolist()
        self.newest_norm = value = math.nan if norm is None else float(norm)
        scaled = getattr(trainer.accelerator, "scaler", None) is not None
        bad_norm = norm is not None and not scaled and not math.isfinite(value)
        if not trainer.any_rank(bad_norm or not all(map(math.isfinite, self._losses))):
            return norm
        kept = self._keep(value)
        if self.skipped >= self.max_skipped or trainer.is_deepspeed_enabled:
            if not (trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled):  # there a rank holds a part of them
                trainer.save_model(str(kept / "weights"))
            raise FaultError(self._message(value, kept))
        trainer.counts[SKIPPED] += 1
        trainer._tr_loss.copy_(before)
        trainer.model.zero_grad(set_to_none=True)
        trainer._metrics["train"]["faults/skipped"] = [float(self.skipped)]
        return norm

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """No checkpoint holds a weight that is no finite number, whatever made it so."""
        trainer: Any = self
        if self.fault_folder is not None:
            weights = trainer.model.named_parameters()
            bad = [name for name, weight in weights if weight.is_floating_point() and not weight.isfinite().all()]
            if trainer.any_rank(bool(bad)):
                raise FaultError(self._weights_message(bad))
        super()._save_checkpoint(model, trial)  # type: ignore[misc]

    def _weights_message(self, bad: list[str]) -> str:
        trainer: Any = self
        named = f" ({', '.join(bad[:3])})" if bad else ""
        return (
            f"Behind optimizer step {trainer.state.global_step} {len(bad)} of this rank's weights{named} hold a number "
            "that is not finite, although every loss and gradient norm was: the steps were too large for their type. "
            "This checkpoint is not written; go on from the one before with a lower trl.learning_rate."
        )

    def _keep(self, norm: float) -> Path:
        """Write what the optimizer step was made of; each rank its own file."""
        trainer: Any = self
        folder: Path = Path(self.fault_folder or ".") / f"step-{trainer.state.global_step + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        rank = trainer.accelerator.process_index
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        torch.save(
            {
                "rollout_batch": trainer._buffered_inputs,
                "micro_batches_trained": trainer._step,
                "losses": self._losses,
                "grad_norm": norm,
                "random_states": {
                    "python": random.getstate(),
                    "numpy": np.random.get_state(),
                    "torch": torch.get_rng_state(),
                    "cuda": cuda,
                },
            },
            folder / f"rank-{rank}.pt",
        )
        if rank == 0:
            words = {"step": trainer.state.global_step + 1, "seed": trainer.args.seed, "grad_norm": str(norm)}
            words |= {"losses": list(map(str, self._losses)), "weights": "those of the step before"}
            (folder / "fault.json").write_text(json.dumps(words, indent=2) + "\n")
            trainer.state.save_to_json(str(folder / "trainer_state.json"))
        return folder

    def _message(self, norm: float, kept: Path) -> str:
        trainer: Any = self
        losses = ", ".join(f"{loss:g}" for loss in self._losses)
        allowed = f" after {self.skipped} that were left out" if self.skipped else ""
        return (
            f"Optimizer step {trainer.state.global_step + 1} is no number{allowed}: losses {losses} of this rank's "
            f"micro-batches, gradient norm {norm:g}. A step with it makes every weight NaN, so it was not made. Its "
            f"batch and random states are in {kept}. Go on from the last checkpoint with a lower trl.learning_rate or "
            "trl.max_grad_norm; stopping.skip_faults leaves out a few such steps."
        )

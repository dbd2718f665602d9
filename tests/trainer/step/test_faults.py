"""A loss or gradient that is not finite never reaches the weights: kept, left out, or the end of the run."""

import math
import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.run.processes import is_full
from evenkeel.trainer.step.guards import SKIPPED, FaultError
from evenkeel.trainer.step.options import Guards
from tests.trainer.training import made


class Guarded(RLVRTrainer):
    """The loss of chosen optimizer steps is replaced: the forward and backward passes are real."""

    loss_at: dict[int, float]

    def _compute_loss(self, model: Any, inputs: Any) -> torch.Tensor:
        factor = self.loss_at.get(self.state.global_step + 1, 1.0)
        return super()._compute_loss(model, inputs) * factor


def lengths_modulo_three(completions: list[str], **_: Any) -> list[float]:
    return [float(len(text) % 3) for text in completions]


def trained(
    model: Path,
    folder: Path,
    loss_at: dict[int, float],
    max_skipped: int,
    steps: int = 3,
    checkpoint: Path | None = None,
    trainer_class: type[Guarded] | None = None,
    **settings: Any,
) -> Guarded:
    sizes = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_completion_length": 4}
    rates = {"lr_scheduler_type": "constant", "logging_nan_inf_filter": False}
    settings = {**sizes, **rates, "max_steps": steps, "reward": lengths_modulo_three, **settings}
    settings["rows"] = [{"prompt": text} for text in ("a b", "b a", "a a", "b b")] * 4
    guards = {"guards": Guards(folder / "faults", max_skipped=max_skipped)}
    trainer: Guarded = made(trainer_class or Guarded, model, folder, strategies=guards, **settings)
    trainer.loss_at = loss_at
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return trainer


def test_the_run_stops_with_its_weights_unharmed(tiny_model: Path, tmp_path: Path):
    with pytest.raises(FaultError, match="Optimizer step 2 is not finite"):
        trained(tiny_model, tmp_path, {2: float("nan")}, 0)
    kept = tmp_path / "faults" / "step-2"
    state = torch.load(kept / "rank-0.pt", weights_only=False)
    assert state["rollout_batch"][0]["completion_ids"].shape[0] == 4
    assert len(state["losses"]) == 2
    weights = load_file(kept / "weights" / "model.safetensors")
    assert all(weight.isfinite().all() for weight in weights.values())


def test_a_step_that_is_left_out_moves_nothing_and_the_run_goes_on(tiny_model: Path, tmp_path: Path):
    trainer = trained(tiny_model, tmp_path, {3: float("nan")}, 1)
    before = trained(tiny_model, tmp_path / "two", {}, 0, steps=2)
    for left_out, never_made in zip(trainer.model.parameters(), before.model.parameters(), strict=True):
        assert torch.equal(left_out, never_made)
    assert trainer.parts.checkpoint.counts[SKIPPED] == 1
    assert trainer.state.global_step == 3
    with pytest.raises(FaultError, match=r"step 3 is not finite: .*; 1 such"):
        trained(tiny_model, tmp_path / "again", {1: float("nan"), 3: float("inf")}, 1)


def test_a_resumed_run_goes_on_counting_the_steps_that_were_left_out(tiny_model: Path, tmp_path: Path):
    saved = {"save_strategy": "steps", "save_steps": 2}
    trained(tiny_model, tmp_path, {1: float("nan")}, 1, steps=2, **saved)
    checkpoint = tmp_path / "checkpoint-2"
    with pytest.raises(FaultError, match=r"step 3 is not finite: .*; 1 such"):
        trained(tiny_model, tmp_path, {3: float("nan")}, 1, checkpoint=checkpoint)
    resumed = trained(tiny_model, tmp_path, {3: float("nan")}, 2, checkpoint=checkpoint)
    assert resumed.parts.checkpoint.counts[SKIPPED] == 2
    assert resumed.state.log_history[-2]["faults/skipped"] == 2.0


def test_a_step_that_is_left_out_is_in_no_mean_of_the_log_line(tiny_model: Path, tmp_path: Path):
    """One line for three steps, of which the second's log-probabilities are NaN: the means are of the two others."""

    class Overflowing(Guarded):
        def _compute_loss(self, model: Any, inputs: Any) -> torch.Tensor:
            if self.state.global_step != 1:
                return super()._compute_loss(model, inputs)
            nan = model.get_input_embeddings().register_forward_hook(lambda *given: given[-1] * float("nan"))
            try:
                return super()._compute_loss(model, inputs)
            finally:
                nan.remove()

    trainer = trained(tiny_model, tmp_path, {}, 1, trainer_class=Overflowing, logging_steps=3)
    (line,) = [line for line in trainer.state.log_history if "loss" in line]
    assert line["faults/skipped"] == 1.0
    for name in ("grad_share/q1", "token_prob/frac_q1"):
        assert math.isfinite(line[name])


def test_a_full_disk_ends_the_run_at_its_checkpoint(tiny_model: Path, tmp_path: Path):
    """At step 2 the kernel lets no file grow beyond 40 kB, as a quota would; the weights take more."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Limited(Guarded):
        def save_model(self, *positional: Any, **keywords: Any) -> None:
            if self.state.global_step == 2:
                resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, most))
            super().save_model(*positional, **keywords)

    try:
        with pytest.raises(Exception, match="too large") as raised:
            trained(tiny_model, tmp_path, {}, 0, trainer_class=Limited, save_strategy="steps", save_steps=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert is_full(raised.value)
    assert (tmp_path / "checkpoint-1" / "evenkeel.pt").exists()
    with pytest.raises(RuntimeError) as torchs:
        torch.save(torch.zeros(1 << 20), "/dev/full")
    assert is_full(torchs.value)
    assert not is_full(ValueError("shape mismatch"))

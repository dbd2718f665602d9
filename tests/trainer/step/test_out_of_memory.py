"""Memory that runs out: by real allocations that no machine can make, in each phase of a step."""

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.guards import FaultError, is_out_of_memory
from evenkeel.trainer.step.options import Guards

IMPOSSIBLE = 1 << 56
"""Bytes; torch's CPU allocator is asked for them and says no."""


class Greedy(RLVRTrainer):
    """Asks for too much in one method, where its phase does."""

    asks_in: str

    def _ask(self, method: str) -> None:
        if self.asks_in == method:
            torch.empty(IMPOSSIBLE, dtype=torch.uint8)

    def _compute_loss(self, *positional: Any, **keywords: Any) -> torch.Tensor:
        self._ask("loss")
        return super()._compute_loss(*positional, **keywords)

    def _generate_single_turn(self, *positional: Any, **keywords: Any) -> Any:
        self._ask("generate")
        return super()._generate_single_turn(*positional, **keywords)

    def create_optimizer(self, *positional: Any, **keywords: Any) -> Any:
        optimizer = super().create_optimizer(*positional, **keywords)
        step = optimizer.step

        def greedy_step(*arguments: Any, **more: Any) -> Any:
            self._ask("optimizer")
            return step(*arguments, **more)

        optimizer.step = greedy_step
        return optimizer


def trained(model: Path, folder: Path, asks_in: str) -> None:
    def reward(completions: list[str], **_: Any) -> list[float]:
        if asks_in == "reward":
            bytearray(1 << 62)
        return [float(len(text) % 3) for text in completions]

    arguments = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=4,
        max_steps=1,
        save_strategy="no",
        report_to="none",
    )
    rows = Dataset.from_dict({"prompt": ["a b", "b a", "a a", "b b"]})
    trainer = Greedy(str(model), reward, arguments, rows, guards=Guards(folder / "faults"))
    trainer.asks_in = asks_in
    trainer.train()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asks_in", "phase"),
    [
        ("generate", "generation"),
        ("reward", "reward functions"),
        ("loss", "forward and backward pass"),
        ("optimizer", "optimizer step"),
    ],
)
def test_the_phase_is_named(tiny_model: Path, tmp_path: Path, asks_in: str, phase: str):
    with pytest.raises(FaultError, match=f"in the {phase} at optimizer step 1 ") as caught:
        trained(tiny_model, tmp_path, asks_in)
    assert (caught.value.code, caught.value.of_one_rank) == ("out-of-memory", True)


def test_what_is_out_of_memory():
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))  # what a user wrote, perhaps

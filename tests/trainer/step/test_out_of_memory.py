"""Memory that runs out: by real allocations that no machine can make, in each phase of a step."""

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.guards import FILE, ExhaustedMemoryError, is_out_of_memory, largest_tensors
from evenkeel.trainer.step.options import Guards

IMPOSSIBLE = 1 << 56
"""Bytes; torch's CPU allocator is asked for them and says no."""


class Greedy(RLVRTrainer):
    """Asks for too much in one method, where its phase does."""

    asks_in: str

    def _ask(self, method: str) -> None:
        if self.asks_in == method:
            the_largest_here = torch.zeros(3, 1 << 20)
            torch.empty(IMPOSSIBLE, dtype=torch.uint8)
            del the_largest_here

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
    ("asks_in", "phase", "knob"),
    [
        ("generate", "generation", "trl.max_completion_length (is 4)"),
        ("reward", "reward functions", "algorithm.prompts_per_rollout"),
        ("loss", "forward and backward pass", "Lower trl.per_device_train_batch_size (is 4"),
        ("optimizer", "optimizer step", "trl.optim: adamw_8bit (is adamw"),
    ],
)
def test_the_phase_the_largest_tensors_and_the_knob_are_named(tiny_model: Path, tmp_path: Path, asks_in, phase, knob):
    with pytest.raises(ExhaustedMemoryError) as caught:
        trained(tiny_model, tmp_path, asks_in)
    said = str(caught.value)
    assert f"Out of memory in the {phase} at optimizer step 1 (rank 0 on cpu)" in said
    assert knob in said
    if asks_in != "reward":
        assert "the_largest_here (3, 1048576) float32 on cpu, 12.0 MiB" in said  # 3 · 2²⁰ · 4 bytes
    assert (tmp_path / "faults" / FILE).read_text().strip() == said
    assert caught.value.of_one_rank
    with pytest.raises(ExhaustedMemoryError, match=r"^$"):  # another rank, a moment later
        trained(tiny_model, tmp_path, asks_in)


def test_what_is_out_of_memory():
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))  # what a user wrote, perhaps


def test_views_of_one_storage_count_once():
    whole = torch.zeros(1 << 22)
    parts = whole.chunk(4)
    named = [tensor for tensor in largest_tensors(None, 1000) if tensor.num_bytes == whole.nbytes]
    assert len(named) == 1
    assert len(parts) == 4

"""A checkpoint's own file: what it holds."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from evenkeel.errors import Refusal
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.checkpoint import FILE, Checkpoint, LogState
from evenkeel.trainer.step.setup import Ranks
from tests.trainer.training import max_difference, train

LOGGED = LogState(
    {"reward": [0.5, 1.0]}, {"sums": {"advantage/mean": torch.tensor([1.0, 2.0])}, "largest": {}}, 0.25, 3.5, 2
)


def test_what_is_written_is_read_again_without_a_trainer(tmp_path: Path):
    ranks = Ranks(Accelerator(cpu=True))
    written = Checkpoint([], ranks, Counter({"steps left out": 2, "rollout_batches": 7}))
    torch.save(written.content({}, LOGGED), tmp_path / FILE)
    read = Checkpoint([], ranks, Counter({"weight syncs": 9}))
    read.read(tmp_path)
    assert read.counts == {"steps left out": 2, "rollout_batches": 7}
    found = read.take_log_state()
    assert found is not None
    assert (found.metrics, found.loss, found.total_loss, found.last_logged) == ({"reward": [0.5, 1.0]}, 0.25, 3.5, 2)
    assert found.means["sums"]["advantage/mean"].tolist() == [1.0, 2.0]
    assert read.take_log_state() is None
    with pytest.raises(Refusal) as refused:
        read.read(tmp_path / "of_trl")
    assert refused.value.code == "foreign-checkpoint"


class NumberingTrainer(RLVRTrainer):
    """Notes the number and the optimizer step of each rollout batch."""

    def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
        vars(self).setdefault("numbers", []).append((self._position.rollout, self.state.global_step))
        return super()._generate_and_score_completions(inputs)


def test_rollout_batches_are_numbered_in_order_where_an_epoch_ends_inside_an_optimizer_step(
    tiny_model: Path, tmp_path: Path
):
    """4 rollout batches an epoch, 3 of them an optimizer step: each epoch makes one step of 3 and one of 1."""
    settings: dict[str, Any] = {"gradient_accumulation_steps": 3, "steps_per_generation": 1, "max_steps": 5}
    settings |= {"save_strategy": "steps", "save_steps": 2}
    straight = train(NumberingTrainer, tiny_model, tmp_path / "straight", **settings)
    steps = [0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 4]
    assert vars(straight)["numbers"] == list(enumerate(steps))
    checkpoint = tmp_path / "straight" / "checkpoint-2"
    settings["resume_from_checkpoint"] = str(checkpoint)
    resumed = train(NumberingTrainer, tiny_model, tmp_path / "resumed", **settings)
    assert vars(resumed)["numbers"] == list(enumerate(steps))[4:]
    assert max_difference(straight, resumed) == 0.0

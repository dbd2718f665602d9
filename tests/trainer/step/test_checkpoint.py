"""A checkpoint's own file: what it holds, and that those of versions before are read."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.checkpoint import FILE, Checkpoint, LogState
from evenkeel.trainer.step.options import Guards
from evenkeel.trainer.step.ranks import Ranks
from tests.trainer.training import max_difference, train

LOGGED = LogState(
    {"reward": [0.5, 1.0]}, {"sums": {"advantage/mean": torch.tensor([1.0, 2.0])}, "largest": {}}, 0.25, 3.5, 2
)


@pytest.fixture
def ranks() -> Ranks:
    return Ranks(Accelerator(cpu=True))


def test_what_is_written_is_read_again_without_a_trainer(tmp_path: Path, ranks: Ranks):
    written = Checkpoint([], ranks, Counter({"steps left out": 2, "rollout_batches": 7}))
    torch.save(written.content(written.agreed_states(), LOGGED), tmp_path / FILE)
    read = Checkpoint([], ranks, Counter({"weight syncs": 9}))
    read.read(tmp_path, lambda step: step)
    assert read.counts == {"steps left out": 2, "rollout_batches": 7}
    found = read.take_log_state()
    assert found is not None
    assert (found.metrics, found.loss, found.total_loss, found.last_logged) == ({"reward": [0.5, 1.0]}, 0.25, 3.5, 2)
    assert found.means["sums"]["advantage/mean"].tolist() == [1.0, 2.0]
    assert read.take_log_state() is None


def test_the_files_of_older_versions_say_the_same(tmp_path: Path, ranks: Ranks):
    (tmp_path / "counts.json").write_text(json.dumps({"steps left out": 2}))
    record: dict[str, Any] = {"metrics": {"reward": [0.5, 1.0]}, "means": {"advantage/mean": [1.0, 2.0]}}
    record |= {"loss": 0.25, "total_loss": 3.5, "last_logged": 2}
    (tmp_path / "logged_so_far_0.json").write_text(json.dumps(record))
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": 6}))
    read = Checkpoint([], ranks)
    read.read(tmp_path, lambda step: step // 2)
    assert read.counts == {"steps left out": 2, "rollout_batches": 3}
    assert read.log_state is not None
    assert read.log_state.means["sums"]["advantage/mean"].tolist() == [1.0, 2.0]
    assert read.log_state.means["sums"]["advantage/mean"].dtype == torch.float64
    empty = Checkpoint([], ranks, Counter(syncs=1))
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "trainer_state.json").write_text(json.dumps({"global_step": 0}))
    empty.read(tmp_path / "bare", lambda step: step)
    assert (empty.counts, empty.log_state) == ({"rollout_batches": 0}, None)


def test_a_run_of_an_older_version_is_resumed_to_the_same_weights_and_logs(tiny_model: Path, tmp_path: Path):
    def run(name: str, checkpoint: str | None = None) -> Any:
        guards = {"guards": Guards(tmp_path / "faults"), "prompt_sampler": "difficulty"}
        settings = {"save_strategy": "steps", "save_steps": 3, "max_steps": 4, "logging_steps": 2}
        settings |= {"reward": with_verdicts, "strategies": guards, "resume_from_checkpoint": checkpoint}
        return train(RLVRTrainer, tiny_model, tmp_path / name, **settings)

    straight = run("straight")
    checkpoint = tmp_path / "straight" / "checkpoint-3"
    saved = torch.load(checkpoint / FILE, weights_only=True)
    torch.save(saved["strategies"], checkpoint / "strategies.pt")
    (checkpoint / "counts.json").write_text(json.dumps(saved["counts"]))
    (logged,) = saved["logged"]
    means = {name: pair.tolist() for name, pair in logged.pop("means")["sums"].items()}
    (checkpoint / "logged_so_far_0.json").write_text(json.dumps({**logged, "means": means}))
    (checkpoint / FILE).unlink()
    resumed = run("resumed", str(checkpoint))
    assert max_difference(straight, resumed) == 0.0
    lines = [
        {name: value for name, value in run.state.log_history[-2].items() if "tim" not in name and "_s" not in name}
        for run in (straight, resumed)
    ]
    assert lines[0] == lines[1]
    assert lines[0]["step"] == 4


def with_verdicts(completions: list[Any], log_extra: Any, **_: Any) -> list[float]:
    right = [len(completion[0]["content"]) % 2 == 0 for completion in completions]
    log_extra("correct", right)
    return [float(value) for value in right]


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

"""Noise of rewards in training: the same after a resume and on two processes; evaluations hear the truth."""

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from torch import Tensor

from evenkeel.rewards import reward_functions
from evenkeel.rewards.noise import RewardNoise
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.evaluation.decoding import Decoding
from tests.trainer.step.without_torch import FirstIsDigit
from tests.trainer.training import PROMPTS, logged, made, max_difference

ROWS = [{**row, "reference": row["prompt"][0]["content"]} for row in PROMPTS]
SEEN: list[tuple[Tensor, Tensor]] = []
"""Rewards and verdicts of each rollout batch, as an estimator is told."""


def seeing(rewards: Tensor, group_size: int, correct: Tensor) -> Tensor:
    """Rewards less their group's mean, noted."""
    SEEN.append((rewards.clone(), correct.clone()))
    return rewards - rewards.view(-1, group_size).nanmean(1).repeat_interleave(group_size)


def with_noise(model: Path, folder: Path, noise: RewardNoise | None, **settings: Any) -> RLVRTrainer:
    reward = reward_functions({"digit": FirstIsDigit()}, noise={"digit": noise})
    given = {"advantage": seeing, "generation": "compact", "common_random_numbers": True, "decodings": [Decoding(1)]}
    given["eval_dataset"] = Dataset.from_list(ROWS)
    trainer: RLVRTrainer = made(RLVRTrainer, model, folder, reward=reward, rows=ROWS, strategies=given, **settings)
    SEEN.clear()  # of the example that estimators are tried on
    return trainer


def test_an_inverted_reward_is_told_to_estimators_and_the_truth_is_logged(tiny_model: Path, tmp_path: Path):
    trainer = with_noise(
        tiny_model, tmp_path, RewardNoise(false_positive=1.0, false_negative=1.0), max_steps=2, learning_rate=0.0
    )
    trainer.train()
    for rewards, correct in SEEN:
        assert torch.equal(rewards, correct)
    told = [rewards.mean().item() for rewards, _ in SEEN]
    assert logged(trainer, "verifier/accuracy") == pytest.approx([1 - each for each in told])
    trainer.evaluate()
    (result,) = trainer.parts.held_out.newest
    assert all(record["correct"] == record["completion"][:1].isdigit() for record in result.records)
    assert all(record["reward"] == float(record["correct"]) for record in result.records)


def test_a_resumed_run_hears_the_same_errors(tiny_model: Path, tmp_path: Path):
    noise = RewardNoise(false_positive=0.4, false_negative=0.4)
    straight = with_noise(tiny_model, tmp_path / "straight", noise, max_steps=4, save_strategy="steps", save_steps=2)
    straight.train()
    resumed = with_noise(tiny_model, tmp_path / "resumed", noise, max_steps=4)
    resumed.train(resume_from_checkpoint=str(tmp_path / "straight" / "checkpoint-2"))
    assert max_difference(straight, resumed) == 0.0
    assert logged(straight, "verifier/accuracy") != logged(straight, "reward")

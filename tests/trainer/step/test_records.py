"""What is recorded of a rollout batch is what the trainer trained on, and recording changes nothing of it."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.advantages.group_baselines import grpo
from evenkeel.trainer.step.records import recorded_groups
from tests.trainer.training import PROMPTS, digit_reward, made


def digit_scores(completions: list[Any], log_extra: Any = None, **_: Any) -> list[float | None]:
    """`digit_reward`, unscored where it begins with a; leaves verdicts, answers, reasons and a column of its own."""
    texts = [completion[0]["content"] for completion in completions]
    scores = [None if text[:1] == "a" else score for text, score in zip(texts, digit_reward(completions), strict=True)]
    log_extra("correct", [None if score is None else score >= 0.5 for score in scores])
    log_extra("scored/answer", [text[:3] for text in texts])
    log_extra("scored/reason", ["no \ud800 text" if score is None else f"{score} are digits" for score in scores])
    log_extra("words", [len(text.split()) for text in texts])
    return scores


def recorded(model: Path, folder: Path, per_batch: int | None = None, **settings: Any) -> tuple[Any, dict[int, Any]]:
    """A run with `digit_scores`, and what its sink was given: number of the batch → columns."""
    found: dict[int, Any] = {}
    trainer = made(RLVRTrainer, model, folder, reward=digit_scores, **settings)
    trainer.parts.recorder.sink, trainer.parts.recorder.rows_per_batch = found.__setitem__, per_batch
    trainer.train()
    return trainer, found


def test_rows_are_what_was_sampled_scored_and_trained(tiny_model: Path, tmp_path: Path):
    def scored(
        rewards: torch.Tensor, group_size: int, old_logps: torch.Tensor, entropies: torch.Tensor
    ) -> torch.Tensor:
        assert old_logps.shape == entropies.shape
        return grpo(rewards, group_size)

    trainer, batches = recorded(tiny_model, tmp_path, strategies={"advantage": scored}, max_steps=2)
    assert list(batches) == [0, 1]
    first = batches[0]
    assert first["row"] == list(range(8))
    assert first["group"] == [0] * 4 + [1] * 4
    assert (batches[1]["step"], batches[1]["batch"]) == ([1] * 8, [1] * 8)
    tokenizer, policy = (kind.from_pretrained(tiny_model) for kind in (AutoTokenizer, AutoModelForCausalLM))
    asked = {f"user {row['prompt'][0]['content']} assistant" for row in PROMPTS}
    assert {*first["prompt"]} <= asked
    texts = tokenizer.batch_decode(first["completion_ids"], skip_special_tokens=True)
    assert first["completion"] == texts
    rewards = digit_scores([[{"content": text}] for text in texts], log_extra=lambda *_: None)
    assert first["reward"] == first["rewards/digit_scores"] == rewards
    assert first["correct"] == [None if reward is None else reward >= 0.5 for reward in rewards]
    assert first["scored/answer"] == [text[:3] for text in texts]
    assert first["others"] == [f'{{"words": {len(text.split())}}}' for text in texts]
    for start in (0, 4):  # (r − mean) / (std + 1e-4), of the scored
        known = [reward for reward in rewards[start : start + 4] if reward is not None]
        mean = sum(known) / len(known)
        std = math.sqrt(sum((reward - mean) ** 2 for reward in known) / max(len(known) - 1, 1))
        for reward, advantage in zip(rewards[start : start + 4], first["advantage"][start : start + 4], strict=True):
            wanted = 0.0 if reward is None or std == 0 else (reward - mean) / (std + 1e-4)
            assert advantage == pytest.approx(wanted, abs=1e-5)
    assert first["advantages"] == first["mask"] == [None] * 8
    for prompt, ids, old, entropies in zip(
        *(first[name] for name in ("prompt_ids", "completion_ids", "old_logps", "entropies")), strict=True
    ):
        logits = policy(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        assert old == pytest.approx(logits.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist(), abs=1e-5)
        assert entropies == pytest.approx((-logits.exp() * logits).sum(1).tolist(), abs=1e-5)
    assert first["truncated"] == [ids[-1] != tokenizer.eos_token_id for ids in first["completion_ids"]]
    assert first["num_tokens"] == list(map(len, first["completion_ids"]))
    assert trainer.state.global_step == 2


def test_some_groups_are_whole_and_spread():
    assert recorded_groups(16, 8, None) == set(range(16))
    assert recorded_groups(16, 8, 64) == {0, 2, 4, 6, 8, 10, 12, 14}
    assert recorded_groups(16, 8, 17) == {0, 5, 10}  # 17 rows: three groups of 8
    assert recorded_groups(4, 8, 1000) == {0, 1, 2, 3}
    assert recorded_groups(4, 8, 1) == {0}

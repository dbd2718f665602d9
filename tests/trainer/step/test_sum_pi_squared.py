"""The signal `sum_pi_squared` is that of the policy that sampled, however a batch is scored; training is as before."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.advantages.group_baselines import dr_grpo
from tests.trainer.training import CUT_IN_TWO, made

TEMPERATURE = 0.7


def watched(model: Path, folder: Path, speed: dict[str, Any], **settings: Any) -> tuple[Any, dict[str, Any]]:
    """A run whose estimator is ``dr_grpo`` and looks at the signal; what the first rollout batch held."""
    seen: dict[str, Any] = {}

    def watching(rewards, group_size, mask, completion_ids, old_logps, sum_pi_squared):
        if seen.get("is_training"):
            seen.setdefault("mask", mask)
            seen.setdefault("squares", sum_pi_squared)
            seen.setdefault("old_logps", old_logps)
        return dr_grpo(rewards, group_size)

    strategies = {"advantage": watching, **speed}
    trainer = made(RLVRTrainer, model, folder, strategies=strategies, temperature=TEMPERATURE, **settings)
    trainer.parts.recorder.sink = lambda number, columns: seen.setdefault("rows", columns)
    seen["is_training"] = True
    trainer.train()
    return trainer, seen


@pytest.mark.parametrize(
    ("speed", "settings"),
    [({}, {}), CUT_IN_TWO, ({"peft_config": LoraConfig(r=2, target_modules="all-linear")}, {})],
    ids=["on-policy", "scored by TRL, planned", "LoRA"],
)
def test_it_is_the_sum_over_the_vocabulary_at_the_sampling_temperature(tiny_model, tmp_path, speed, settings):
    trainer, seen = watched(tiny_model, tmp_path, speed, max_steps=1, **settings)
    policy = AutoModelForCausalLM.from_pretrained(tiny_model)
    for row, (prompt, ids) in enumerate(zip(seen["rows"]["prompt_ids"], seen["rows"]["completion_ids"], strict=True)):
        logits = policy(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        probs = (logits / TEMPERATURE).softmax(-1)
        torch.testing.assert_close(seen["squares"][row, : len(ids)], (probs**2).sum(1), rtol=1e-4, atol=1e-6)
        own = probs.gather(1, torch.tensor(ids)[:, None])[:, 0]
        torch.testing.assert_close(seen["old_logps"][row, : len(ids)].exp(), own, rtol=1e-4, atol=1e-6)
        assert (seen["mask"][row].sum()) == len(ids)
    head = trainer.accelerator.unwrap_model(trainer.model)
    ids = torch.tensor([[1, 2, 3]])
    outputs = head(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids, fused_lm_head=True)
    assert outputs.log_sum_sq_probs is None  # training's own passes compute no more than before
    assert outputs.entropy is not None

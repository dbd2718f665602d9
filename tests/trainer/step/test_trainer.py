"""`RLVRTrainer` beyond parity: what strategies do to a real step, what a run leaves behind, how it resumes."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from trl import GRPOTrainer

from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.algorithms.update_schedules import single_pass
from tests.trainer.training import PROMPTS, begun, by_tokens, made, moved, ours

ROWS = [row for row in PROMPTS[:2] for _ in range(4)]


def ready(model: Path, output_dir: Path, *, loss_type: str, beta: float = 0.0, **strategies: Any) -> RLVRTrainer:
    """A trainer in the state of its first training step, on one micro-batch of two groups of four."""
    loss = {"loss_type": loss_type, "beta": beta, "epsilon_high": 5.0 if loss_type == "cispo" else None}
    trainer: RLVRTrainer = begun(made(RLVRTrainer, model, output_dir, strategies=strategies, **loss))
    torch.manual_seed(0)
    return trainer


def gradient(trainer: RLVRTrainer, batch: dict[str, Any]) -> torch.Tensor:
    trainer.model.zero_grad()
    trainer._compute_loss(trainer.model, batch).backward()
    return torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])


def perturb(trainer: RLVRTrainer) -> None:
    """Move the policy away from the one that sampled, so that ratios and KL are not trivial."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.add_((0.02 * torch.randn(parameter.shape, generator=generator)).to(parameter.device))


@pytest.mark.parametrize(
    ("loss_type", "beta", "order"),
    [
        *((name, 0.0, "low_first") for name in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "vespo")),
        *((name, 0.04, "high_first") for name in ("cispo", "luspo")),
        ("dapo", 0.04, "random"),
    ],
)
def test_lopti_passes_add_up_to_the_joint_gradient(tiny_model, tmp_path: Path, loss_type, beta, order):
    schedule = {"name": "lopti", "eta": 0.05, "order": order}  # 24 words: about half the tokens lie below 0.05
    trainer = ready(tiny_model, tmp_path, loss_type=loss_type, beta=beta, update_schedule=schedule)
    batch = trainer._generate_and_score_completions(ROWS)
    perturb(trainer)
    passes = []
    for pass_index in range(2):
        trainer._step = pass_index * trainer.args.steps_per_generation
        passes.append(gradient(trainer, batch))
    loss = trainer.parts.loss
    loss.strategies = replace(loss.strategies, schedule=single_pass())
    loss.schedule = replace(loss.schedule, num_passes=1)
    joint = gradient(trainer, batch)
    assert (passes[0] + passes[1] - joint).norm() <= 1e-6 * joint.norm()
    assert min(part.norm() for part in passes) > 0.05 * joint.norm()  # neither pass is empty


@pytest.mark.parametrize("schedule", ["single_pass", {"name": "lopti", "eta": 0.05}])
def test_adv_reweight_multiplies_the_token_advantages(tiny_model, tmp_path: Path, schedule):
    weight = {"name": "adv_reweight", "alpha": 0.7}
    trainer = ready(tiny_model, tmp_path, loss_type="dapo", token_weight=weight, update_schedule=schedule)
    batch = trainer._generate_and_score_completions(ROWS)
    assert ("old_per_token_logps" in batch) == (schedule != "single_pass")  # both ways to the old probabilities
    prompt_and_completion = [
        torch.cat([batch[f"prompt_{x}"], batch[f"completion_{x}"]], dim=1) for x in ("ids", "mask")
    ]
    length = batch["completion_ids"].shape[1]
    logps = trainer._get_per_token_logps_and_entropies(trainer.model, *prompt_and_completion, length)[0].detach()
    advantages = batch["advantages"][:, None] * (0.7 * logps.exp() + 0.3)  # α π + (1 − α)
    if schedule != "single_pass":
        advantages = advantages * (logps.exp() < 0.05)
    by_hand = GRPOTrainer._compute_loss(trainer, trainer.model, {**batch, "advantages": advantages})
    torch.testing.assert_close(trainer._compute_loss(trainer.model, batch), by_hand, rtol=1e-6, atol=1e-9)
    unweighted = GRPOTrainer._compute_loss(trainer, trainer.model, batch)
    assert (by_hand - unweighted).abs() > 1e-4


def test_dead_groups_move_nothing(tiny_model, tmp_path: Path):
    """Eight times 0.2 has a float std > 0, and Adam turns any gradient into a full step."""

    def constant(completions: list[Any], **_: Any) -> list[float]:
        return [0.2] * len(completions)

    trainer = ours(tiny_model, tmp_path, reward=constant, num_generations=8, max_steps=2)
    assert moved(trainer, tiny_model) == 0.0
    assert trainer.state.log_history[0]["groups/frac_dead"] == 1.0


def test_kl_of_dead_groups_is_that_of_all_where_all_are_dead(tiny_model, tmp_path: Path):
    def live_once(trainer_state: Any, **columns: Any) -> list[float]:
        return [1.0] * len(columns["completions"]) if trainer_state.global_step else by_tokens(**columns)

    first, second = ours(tiny_model, tmp_path, reward=live_once, beta=0.1, max_steps=2).state.log_history[:2]
    assert "groups/kl_dead" not in first
    assert second["groups/kl_dead"] == pytest.approx(second["kl"], rel=1e-4) != 0


@pytest.mark.parametrize(("value", "weight"), [(-1e13, 0.0), (1.0, 1e38)])
def test_a_reward_that_cannot_be_summed_is_refused_by_name_and_value(tiny_model, tmp_path: Path, value, weight):
    def huge(completions: list[Any], **_: Any) -> list[float]:
        return [value, *([0.0] * (len(completions) - 1))]

    with pytest.raises(ValueError, match=re.escape(f"huge ({value:g})")):
        ours(tiny_model, tmp_path, reward=huge, reward_weights=[weight])


def test_lora_trains_the_adapter_alone(tiny_model, tmp_path: Path):
    peft = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    strategies = {"advantage": "exchangeable", "token_weight": "adv_reweight", "update_schedule": "lopti"}
    trainer = ours(tiny_model, tmp_path, peft_config=peft, strategies=strategies, beta=0.04, max_steps=4)
    trained = [p for p in trainer.model.parameters() if p.requires_grad]
    assert max(p.abs().max().item() for n, p in trainer.model.named_parameters() if "lora_B" in n) > 1e-3
    assert sum(p.numel() for p in trained) < sum(p.numel() for p in trainer.model.parameters()) / 2
    base = {n: p for n, p in trainer.model.named_parameters() if "lora" not in n}
    assert not any(p.requires_grad for p in base.values())

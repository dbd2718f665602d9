"""DFPO in a real training run: the gradient is the hand-written estimator's, and shared tokens receive none."""

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, TrainerCallback
from trl import GRPOConfig

from evenkeel.trainer import RLVRTrainer
from tests.trainer.training import PROMPTS, digit_reward

CLIP_FREE = {"loss_type": "cispo", "epsilon_high": 1e30}
BOTH = pytest.mark.parametrize("coefficient", ["dfpo_min_replace", "dfpo_orthogonal"])
TEMPERATURE = 0.7


class Recorded(RLVRTrainer):
    """Keeps the policy and the micro-batch of every loss."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        policy = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        self.__dict__.setdefault("losses", []).append((policy, dict(inputs)))
        return super()._compute_loss(model, inputs)


class Gradients(TrainerCallback):
    def __init__(self) -> None:
        self.steps: list[torch.Tensor] = []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.steps.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))


def build(model: Path, folder: Path, strategies: dict[str, Any], callbacks: Any = None, **settings: Any) -> Recorded:
    """A trainer of four groups of four responses, one optimizer step on all of them, three steps per rollout batch."""
    torch.set_num_threads(1)
    defaults: dict[str, Any] = {
        "output_dir": str(folder),
        "num_generations": 4,
        "per_device_train_batch_size": 16,
        "max_completion_length": 10,
        "num_iterations": 3,
        "max_steps": 3,
        "learning_rate": 0.3,
        "lr_scheduler_type": "constant",
        "optim": "sgd",
        "max_grad_norm": 1e9,
        "temperature": TEMPERATURE,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 1,
        **CLIP_FREE,
    }
    return Recorded(
        model=str(model),
        reward_funcs=digit_reward,
        args=GRPOConfig(**{**defaults, **settings}),
        train_dataset=Dataset.from_list(PROMPTS),
        callbacks=callbacks,
        **strategies,
    )


def token_logps(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """log π of the completion's tokens at the sampling temperature, (B, T)."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    logits = model(input_ids=ids, attention_mask=attention).logits / TEMPERATURE
    start = batch["prompt_ids"].shape[1]
    return logits.log_softmax(-1)[:, start - 1 : -1].gather(2, ids[:, start:, None]).squeeze(2)


def transformed(coefficient: str, ratios: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    """w̃ of one group (4,), as the paper writes it."""
    if not advantages.any():
        return ratios
    if coefficient == "dfpo_min_replace":
        return ratios.min().expand(4)
    return ratios - (advantages @ ratios) / (advantages @ advantages) * advantages


@BOTH
def test_the_gradient_of_each_step_is_the_hand_written_estimators(tiny_model, tmp_path: Path, coefficient):
    """``−(1/D) Σ_i sg[w̃_i] A_i Σ_t log π``, w̃ of the current policy, differentiated by hand in plain transformers."""
    gradients = Gradients()
    trainer = build(tiny_model, tmp_path, {"coefficient": coefficient}, [gradients])
    trainer.train()
    spans = []
    for (policy, batch), applied in zip(trainer.losses, gradients.steps, strict=True):
        model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).train()
        model.load_state_dict(policy)
        logps, mask, advantages = token_logps(model, batch), batch["completion_mask"], batch["advantages"].double()
        ratios = ((logps.detach() - batch["old_per_token_logps"]) * mask).double().sum(1).exp()
        weights = torch.empty_like(ratios)
        for group in batch["groups"].unique():
            rows = batch["groups"] == group
            weights[rows] = transformed(coefficient, ratios[rows], advantages[rows])
            contributions = weights[rows] * advantages[rows]
            assert contributions.sum().abs() <= 1e-6 * (ratios[rows] * advantages[rows]).abs().sum()
        (-((weights * advantages)[:, None] * logps * mask).sum() / mask.sum()).backward()
        expected = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        assert (applied - expected).norm() < 1e-5 * expected.norm()
        spans.append((ratios.max() / ratios.min()).item())
    assert spans[0] == pytest.approx(1.0, rel=1e-4)  # on-policy
    assert spans[2] > 1.5  # the policy has moved, so that the transform had something to do


def shared_prefix_gradient(model: Path, folder: Path, strategies: dict[str, Any]) -> tuple[float, float]:
    """Norm of the parameters' gradient through the first three tokens, which a group shares, and through the others."""
    trainer = build(model, folder, strategies)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    ids = torch.tensor([[6, 9, 7, 12, 13], [6, 9, 7, 5, 8], [6, 9, 7, 12, 20], [6, 9, 7, 18, 5]])
    batch = {
        "prompt_ids": torch.full((4, 2), 3),
        "prompt_mask": torch.ones(4, 2, dtype=torch.long),
        "completion_ids": ids,
        "completion_mask": torch.ones_like(ids),
        "advantages": torch.tensor([1.5, -0.5, -0.5, -0.5]),
        "groups": torch.zeros(4, dtype=torch.long),
        "judged": torch.ones(4, dtype=torch.bool),
        "shared_prefix": torch.full((4,), 3),
        "num_items_in_batch": torch.tensor(20),
    }
    kept: list[torch.Tensor] = []
    score = trainer._get_per_token_logps_and_entropies

    def scored(*positional: Any, **keywords: Any) -> Any:
        result = score(*positional, **keywords)
        kept.append(result[0])
        result[0].retain_grad()
        return result

    trainer._get_per_token_logps_and_entropies = scored
    trainer._compute_loss(trainer.model, batch)
    moved = torch.zeros(4, 5)
    moved[:, :3] = torch.tensor([0.2, -0.1, 0.3])  # a shared token has one ratio for all
    moved[:, 3:] = torch.tensor([[0.5, 0.4], [-0.3, -0.6], [0.1, 0.0], [-0.2, 0.7]])
    batch["old_per_token_logps"] = kept[0].detach() - moved
    trainer._compute_loss(trainer.model, batch).backward(retain_graph=True)
    parameters = list(trainer.model.parameters())
    norms = []
    for tokens in (slice(3), slice(3, None)):
        gradient = torch.autograd.grad(kept[1][:, tokens], parameters, kept[1].grad[:, tokens], retain_graph=True)
        norms.append(torch.cat([part.flatten() for part in gradient]).norm().item())
    return norms[0], norms[1]


@BOTH
def test_tokens_that_a_group_shares_receive_no_gradient(tiny_model, tmp_path: Path, coefficient):
    shared, others = shared_prefix_gradient(tiny_model, tmp_path, {"coefficient": coefficient})
    assert shared < 1e-6 * others


@pytest.mark.parametrize("weight", ["product", "geometric"])
def test_under_the_untransformed_trajectory_ratio_they_do(tiny_model, tmp_path: Path, weight):
    strategies = {"coefficient": {"name": "trajectory_ratio", "weight": weight}}
    shared, others = shared_prefix_gradient(tiny_model, tmp_path, strategies)
    assert shared > 1e-2 * others


@BOTH
def test_groups_stay_whole_in_every_forward_pass(tiny_model, tmp_path: Path, coefficient):
    settings = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2, "max_steps": 2}
    trainer = build(tiny_model, tmp_path, {"coefficient": coefficient}, **settings)
    trainer.train()
    for _, batch in trainer.losses:
        assert batch["groups"].unique(return_counts=True)[1].tolist() == [4, 4]

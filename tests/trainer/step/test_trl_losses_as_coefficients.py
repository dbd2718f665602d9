"""What TRL's losses multiply each token of a real model by, and strategies that redo what TRL ships."""

from pathlib import Path

import pytest
import torch
from trl import GRPOTrainer

from evenkeel.trainer.algorithms.coefficients.importance_ratios import importance_ratio, symmetric_clip
from evenkeel.trainer.algorithms.coefficients.soft_gates import sapo, vespo
from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN, loss_sequence_weights
from tests.trainer.training import begun, made

LENGTHS = torch.tensor([5, 1, 3, 5])
MASK = (torch.arange(5) < LENGTHS[:, None]).long()
ADVANTAGES = torch.tensor([1.0, -2.0, 0.5, -0.25])


class TokenGradients(GRPOTrainer):
    """TRL's trainer, which also keeps log π of the tokens and what its loss sends back to each."""

    def _get_per_token_logps_and_entropies(self, *positional, **keywords):
        result = super()._get_per_token_logps_and_entropies(*positional, **keywords)
        self.token_logps = result[0]
        self.token_logps.retain_grad()
        return result


@pytest.fixture(scope="module")
def trl_trainer(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> TokenGradients:
    settings = {"per_device_train_batch_size": 4, "epsilon_high": 1.3}
    trainer: TokenGradients = begun(made(TokenGradients, tiny_model, tmp_path_factory.mktemp("run"), **settings))
    return trainer


def batch_on(device: torch.device) -> dict[str, torch.Tensor]:
    batch = {
        "prompt_ids": torch.full((4, 2), 3),
        "prompt_mask": torch.ones(4, 2, dtype=torch.long),
        "completion_ids": torch.arange(5, 25).view(4, 5) % 20,
        "completion_mask": MASK,
        "advantages": ADVANTAGES,
        "num_items_in_batch": MASK.sum(),
    }
    return {name: value.to(device) for name, value in batch.items()}


def applied_by_trl(trainer: TokenGradients, loss_type: str, spread: float, level: str = "token"):
    """log ρ, and what TRL's loss multiplies each token's ``A ∇log π`` by, up to its denominator, π having moved."""
    trainer.loss_type, trainer.importance_sampling_level = loss_type, level
    batch = batch_on(trainer.accelerator.device)
    trainer._compute_loss(trainer.model, batch)
    moved = spread * torch.randn(4, 5, generator=torch.Generator().manual_seed(3))
    batch["old_per_token_logps"] = trainer.token_logps.detach() - moved.to(trainer.accelerator.device)
    trainer._compute_loss(trainer.model, batch).backward()
    log_ratio = trainer.token_logps.detach() - batch["old_per_token_logps"]
    return log_ratio.cpu(), -trainer.token_logps.grad.cpu() / ADVANTAGES[:, None]


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss_type", sorted(PER_SEQUENCE_MEAN | ONE_DENOMINATOR))
def test_a_response_weighs_what_trls_loss_gives_it(trl_trainer, loss_type, level):
    _, applied = applied_by_trl(trl_trainer, loss_type, 0.0, level)
    expected = loss_sequence_weights(loss_type, LENGTHS)[:, None] * MASK
    torch.testing.assert_close(applied / applied.sum(), expected / expected.sum(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("loss_type", "expected"), [("dapo", [2.0, 0.5, 0.0, 1.0]), ("grpo", [0.5, 0.5, 0.0, 0.125])])
def test_a_sequence_ratio_multiplies_the_weight(loss_type, expected):
    ratio = torch.tensor([2.0, 0.5, 3.0, 1.0])
    found = loss_sequence_weights(loss_type, torch.tensor([4, 1, 0, 8]), ratio)
    torch.testing.assert_close(found, torch.tensor(expected))


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("loss_type", ["cispo", "sapo", "vespo", "dapo"])
def test_a_token_weighs_what_trls_loss_gives_it(trl_trainer, loss_type, spread):
    log_ratio, applied = applied_by_trl(trl_trainer, loss_type, spread)
    advantages = ADVANTAGES[:, None].expand(4, 5)
    if loss_type == "cispo":
        expected = symmetric_clip(log_ratio, cap=1.3)
    elif loss_type == "sapo":
        expected = sapo(log_ratio, advantages)
    elif loss_type == "vespo":
        expected = vespo(log_ratio, advantages, MASK).expand(4, 5)
    else:  # inside PPO's clip range alone
        expected, inside = importance_ratio(log_ratio), (log_ratio.exp() - 1).abs() < 0.2
        expected, applied = expected * inside, applied * inside
    denominator = 4 * LENGTHS[:, None] if loss_type == "sapo" else LENGTHS.sum()
    torch.testing.assert_close(applied * denominator, expected * MASK, rtol=1e-4, atol=1e-5)

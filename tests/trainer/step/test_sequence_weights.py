from pathlib import Path

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from evenkeel.trainer.algorithms.sequence_weights import ONE_DENOMINATOR, PER_SEQUENCE_MEAN, loss_sequence_weights
from tests.trainer.training import PROMPTS, digit_reward

LENGTHS = torch.tensor([4, 1, 0, 8])


@pytest.mark.parametrize(("loss_type", "expected"), [("dapo", [2.0, 0.5, 0.0, 1.0]), ("grpo", [0.5, 0.5, 0.0, 0.125])])
def test_a_sequence_ratio_multiplies_the_weight(loss_type, expected):
    ratio = torch.tensor([2.0, 0.5, 3.0, 1.0])
    torch.testing.assert_close(loss_sequence_weights(loss_type, LENGTHS, ratio), torch.tensor(expected))


@pytest.mark.parametrize("loss_type", ["bnpo", "vespo", "no_such_loss"])
def test_losses_without_a_weight_known_beforehand_are_refused(loss_type):
    with pytest.raises(ValueError, match=f"'{loss_type}' has no trajectory weight .* Use one of cispo, dapo"):
        loss_sequence_weights(loss_type, LENGTHS)


class TokenGradients(GRPOTrainer):
    """TRL's trainer, which also keeps what its loss sends back to each token's log probability."""

    def _get_per_token_logps_and_entropies(self, *positional, **keywords):
        result = super()._get_per_token_logps_and_entropies(*positional, **keywords)
        self.token_logps = result[0]
        self.token_logps.retain_grad()
        return result


@pytest.fixture(scope="module")
def trl_trainer(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> TokenGradients:
    args = GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("run")),
        num_generations=4,
        per_device_train_batch_size=4,
        epsilon_high=5.0,
        use_cpu=True,
        bf16=False,
        report_to="none",
    )
    dataset = Dataset.from_list(PROMPTS)
    trainer = TokenGradients(str(tiny_model), reward_funcs=digit_reward, args=args, train_dataset=dataset)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return trainer


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss_type", sorted(PER_SEQUENCE_MEAN | ONE_DENOMINATOR))
def test_the_weights_are_what_trl_multiplies_the_tokens_of_a_response_by(trl_trainer, loss_type, level):
    lengths = torch.tensor([5, 1, 3, 2])
    mask = (torch.arange(5) < lengths[:, None]).long()
    advantages = torch.tensor([1.0, -2.0, 0.5, 3.0])
    trl_trainer.loss_type, trl_trainer.importance_sampling_level = loss_type, level
    loss = trl_trainer._compute_loss(
        trl_trainer.model,
        {
            "prompt_ids": torch.full((4, 2), 3),
            "prompt_mask": torch.ones(4, 2, dtype=torch.long),
            "completion_ids": torch.arange(5, 25).view(4, 5) % 20,
            "completion_mask": mask,
            "advantages": advantages,
            "num_items_in_batch": mask.sum(),
        },
    )
    loss.backward()
    applied = -trl_trainer.token_logps.grad / advantages[:, None]
    expected = loss_sequence_weights(loss_type, lengths)[:, None] * mask
    torch.testing.assert_close(applied / applied.sum(), expected / expected.sum(), rtol=1e-4, atol=1e-6)

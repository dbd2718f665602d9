"""With default strategies `RLVRTrainer` is `GRPOTrainer`, bit for bit: final weights of a run of every loss type.

`bash scripts/gates.sh equality` compares gradients, weights and logs of every step under 72 settings.
"""

from pathlib import Path

import pytest
from trl import GRPOTrainer

from evenkeel.rewards import RewardFunction, build_verifier
from tests.trainer.training import digit_reward, max_difference, moved, ours, sometimes_unscored, train


@pytest.mark.parametrize(
    ("loss_type", "beta", "accumulation", "iterations", "reward"),
    [
        ("dapo", 0.0, 1, 1, digit_reward),
        ("grpo", 0.04, 2, 2, sometimes_unscored),
        ("bnpo", 0.0, 2, 2, digit_reward),
        ("dr_grpo", 0.04, 1, 2, digit_reward),
        ("cispo", 0.0, 1, 2, sometimes_unscored),
        ("sapo", 0.04, 2, 1, sometimes_unscored),
    ],
)
def test_default_strategies_equal_stock_trl_bitwise(
    tiny_model, tmp_path: Path, loss_type, beta, accumulation, iterations, reward
):
    settings = {
        "loss_type": loss_type,
        "beta": beta,
        "gradient_accumulation_steps": accumulation,
        "num_iterations": iterations,
        "reward": reward,
        "per_device_train_batch_size": 8 // accumulation,
    }
    if loss_type == "cispo":
        settings["epsilon_high"] = 5.0
    stock = train(GRPOTrainer, tiny_model, tmp_path / "stock", **settings)
    evenkeel = ours(tiny_model, tmp_path / "ours", **settings)
    assert max_difference(stock, evenkeel) == 0.0
    assert moved(stock, tiny_model) > 1e-3


def test_several_optimizer_steps_per_generation_equal_stock_trl_bitwise(tiny_model, tmp_path: Path):
    settings = {"per_device_train_batch_size": 4, "steps_per_generation": 4, "max_steps": 8}
    stock = train(GRPOTrainer, tiny_model, tmp_path / "stock", **settings)
    evenkeel = ours(tiny_model, tmp_path / "ours", **settings)
    assert max_difference(stock, evenkeel) == 0.0


@pytest.mark.parametrize("iterations", [1, 2])
def test_strategies_that_reduce_to_the_baseline_equal_it_bitwise(tiny_model, tmp_path: Path, iterations):
    settings = {"num_iterations": iterations, "loss_type": "dapo", "reward": sometimes_unscored}
    strategies = {"token_weight": {"name": "adv_reweight", "alpha": 0.0}}
    strategies |= {"advantage": "exchangeable", "keep_groups": "off"}  # its k is a constant under this loss
    stock = train(GRPOTrainer, tiny_model, tmp_path / "stock", **settings)
    settings["reward"] = RewardFunction(build_verifier(lambda completions, **_: sometimes_unscored(completions)), "it")
    evenkeel = ours(tiny_model, tmp_path / "ours", strategies=strategies, **settings)
    assert max_difference(stock, evenkeel) == 0.0

"""With default strategies `RLVRTrainer` is `GRPOTrainer`, bit for bit: final weights of a run of every loss type.

`bash scripts/gates.sh equality` compares gradients, weights and logs of every step under 72 settings.
"""

from pathlib import Path

import pytest
from trl import GRPOTrainer

from evenkeel.rewards import RewardFunction, build_verifier
from tests.trainer.training import digit_reward, max_difference, moved, ours, sometimes_unscored, train

IN_TWO = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4}
TWICE = {"num_iterations": 2}


@pytest.mark.parametrize(
    ("reward", "settings"),
    [
        (digit_reward, {"loss_type": "dapo"}),
        (sometimes_unscored, {"loss_type": "grpo", "beta": 0.04, **IN_TWO, **TWICE}),
        (digit_reward, {"loss_type": "bnpo", **IN_TWO, **TWICE}),
        (digit_reward, {"loss_type": "dr_grpo", "beta": 0.04, **TWICE}),
        (sometimes_unscored, {"loss_type": "cispo", "epsilon_high": 5.0, **TWICE}),
        (sometimes_unscored, {"loss_type": "sapo", "beta": 0.04, **IN_TWO}),
        (digit_reward, {"per_device_train_batch_size": 4, "steps_per_generation": 4, "max_steps": 8}),
    ],
)
def test_default_strategies_equal_stock_trl_bitwise(tiny_model, tmp_path: Path, reward, settings):
    stock = train(GRPOTrainer, tiny_model, tmp_path / "stock", reward=reward, **settings)
    evenkeel = ours(tiny_model, tmp_path / "ours", reward=reward, **settings)
    assert max_difference(stock, evenkeel) == 0.0
    assert moved(stock, tiny_model) > 1e-3


@pytest.mark.parametrize("iterations", [1, 2])
def test_strategies_that_reduce_to_the_baseline_equal_it_bitwise(tiny_model, tmp_path: Path, iterations):
    settings = {"num_iterations": iterations, "loss_type": "dapo", "reward": sometimes_unscored}
    strategies = {"token_weight": {"name": "adv_reweight", "alpha": 0.0}}
    strategies |= {"advantage": "exchangeable", "keep_groups": "off"}  # its k is a constant under this loss
    stock = train(GRPOTrainer, tiny_model, tmp_path / "stock", **settings)
    settings["reward"] = RewardFunction(build_verifier(lambda completions, **_: sometimes_unscored(completions)), "it")
    evenkeel = ours(tiny_model, tmp_path / "ours", strategies=strategies, **settings)
    assert max_difference(stock, evenkeel) == 0.0

"""With default strategies `RLVRTrainer` is `GRPOTrainer`, bit for bit.

By default every loss type runs with both values of every other setting, in two runs of opposite ones; `-m slow` runs
the whole matrix.
"""

import itertools
from pathlib import Path

import pytest
from trl import GRPOTrainer

from tests.trainer.training import digit_reward, max_difference, moved, ours, sometimes_unscored, train

LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo")
MATRIX = [
    pytest.param(
        loss_type,
        beta,
        accumulation,
        iterations,
        reward,
        marks=[] if index in (loss_index, 15 - loss_index) else [pytest.mark.slow],
        id=f"{loss_type}-beta{beta}-ga{accumulation}-it{iterations}-{reward.__name__}",
    )
    for loss_index, loss_type in enumerate(LOSS_TYPES)
    for index, (beta, accumulation, iterations, reward) in enumerate(
        itertools.product((0.0, 0.04), (1, 2), (1, 2), (digit_reward, sometimes_unscored))
    )
]


@pytest.mark.parametrize(("loss_type", "beta", "accumulation", "iterations", "reward"), MATRIX)
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


@pytest.mark.parametrize(
    "strategies",
    [
        pytest.param({"token_weight": {"name": "adv_reweight", "alpha": 0.0}}, id="adv_reweight-alpha0"),
        pytest.param({"advantage": "exchangeable", "keep_groups": "off"}, id="exchangeable-constant-k"),
    ],
)
@pytest.mark.parametrize("iterations", [1, 2])
def test_strategies_that_reduce_to_the_baseline_equal_it_bitwise(tiny_model, tmp_path: Path, strategies, iterations):
    settings = {"num_iterations": iterations, "loss_type": "dapo", "reward": sometimes_unscored}
    stock = train(GRPOTrainer, tiny_model, tmp_path / "stock", **settings)
    evenkeel = ours(tiny_model, tmp_path / "ours", strategies=strategies, **settings)
    assert max_difference(stock, evenkeel) == 0.0

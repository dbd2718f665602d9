"""Every run configuration that ships is loaded and checked as a launch would, and its header says what it owes."""

from pathlib import Path

import pytest

from rewards import build_verifier
from tests.paths import ROOT
from trainer.algorithms.strategies import build_strategies
from trainer.run.config import grpo_config, load_config
from trainer.run.schedule import check_max_steps, check_save_steps
from trainer.step.compatibility import check_combination

CONFIGS = ROOT / "configs"
NO_RUNS = ("accelerate", "evaluation", "sweeps")  # these have tests of their own
RUNS = sorted(path for path in CONFIGS.rglob("*.yaml") if path.relative_to(CONFIGS).parts[0] not in NO_RUNS)
PAPER = sorted((CONFIGS / "knights_knaves").glob("*_[37]b.yaml"))


def test_there_are_configs():
    assert len(RUNS) >= 12


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_config_passes_every_check_that_needs_no_gpu(path: Path):
    launched = load_config(path).num_processes or 1
    config = load_config(path, ["trl.bf16=false", "trl.use_cpu=true"])
    for reward in config.rewards:
        build_verifier(reward.verifier)
    parts = config.algorithm
    strategies = build_strategies(**parts.strategies)
    args = grpo_config(config, launched)
    check_combination(args, strategies)
    check_save_steps(args, strategies.schedule.num_passes)
    check_max_steps(args, strategies.schedule.num_passes)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_header_has_command_hardware_and_expectation(path: Path):
    header = path.read_text().split("\n\n")[0]
    assert path.relative_to(CONFIGS.parent).as_posix() in header, "the command that runs this file"
    assert "Hardware" in header
    assert "Expected" in header


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.name)
def test_paper_recipes_keep_the_papers_numbers(path: Path):
    """arXiv 2505.12929, the settings in its repository."""
    config = load_config(path)
    assert (config.algorithm.prompts_per_rollout, config.algorithm.sequences_per_update) == (64, 256)
    expected = {
        "num_generations": 8,
        "max_completion_length": 4096,
        "temperature": 0.7,
        "top_p": 1.0,
        "num_train_epochs": 5,
        "learning_rate": 1e-6,
        "lr_scheduler_type": "constant",
        "weight_decay": 0.01,
        "max_grad_norm": 1.0,
        "epsilon": 0.2,
        "epsilon_high": 0.24,
        "delta": 10.0,
        "beta": 0.001,
        "use_bias_correction_kl": False,
        "loss_type": "dapo",
        "bf16": True,
    }
    assert {key: config.trl[key] for key in expected} == expected
    strategies = (config.algorithm.token_weight, config.algorithm.update_schedule)
    variant = path.stem.rpartition("_")[0]
    assert (
        strategies
        == {
            "grpo": ("uniform", "single_pass"),
            "exchangeable": ("uniform", "single_pass"),
            "ar": ({"name": "adv_reweight", "alpha": 0.2}, "single_pass"),
            "lopti": ("uniform", {"name": "lopti", "eta": 0.4}),
            "ar_lopti": ({"name": "adv_reweight", "alpha": 0.3}, {"name": "lopti", "eta": 0.5}),
        }[variant]
    )

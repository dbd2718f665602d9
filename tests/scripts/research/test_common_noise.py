"""What common random numbers are worth after a few updates of the policy that ships: `-s` prints the ratio."""

import sys

import numpy as np
import pytest
import torch

from scripts.research.short_runs import short_run
from tests.paths import ROOT

UPDATES, BATCHES, PROMPTS, GROUP = 4, 2, 16, 8
SETTINGS = {
    "seed": 0,
    "common_random_numbers": "true",
    "trl.max_steps": UPDATES,
    "trl.warmup_steps": 0,
    "evaluation.before": "false",
    "data.train.generator.train": 64,
    "data.test.generator.train": 64,
}


def rewards_early_in_training(run_file: str, **variant: str) -> np.ndarray:
    """(prompts, batches · group): rewards of further rollout batches, by the policy that a few updates made."""
    with short_run(ROOT / "configs" / run_file, {**SETTINGS, **variant}) as trainer:
        trainer.train()
        trainer.model.train()
        rows = [dict(trainer.train_dataset[row]) for row in range(PROMPTS) for _ in range(GROUP)]
        found = []
        for batch in range(UPDATES, UPDATES + BATCHES):
            trainer.state.global_step = batch
            with torch.no_grad():
                found.append(trainer._generate_and_judge(rows).rewards.nansum(1).view(PROMPTS, GROUP))
    return torch.cat(found, dim=1).cpu().numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run_file", "variant"),
    [
        ("quickstart.yaml", {"algorithm.token_weight": "{name: adv_reweight, alpha: 0.2}"}),
        ("sweeps/key_door_base.yaml", {"algorithm.advantage": "gigpo"}),
    ],
    ids=["quickstart", "several turns"],
)
def test_paired_differences_vary_less_than_half_as_much_early_in_training(run_file: str, variant: dict[str, str]):
    """Var of r_A − r_B with the same noise over Var r_A + Var r_B with noise of their own, both within prompts."""
    first, second = (rewards_early_in_training(run_file, **settings) for settings in ({}, variant))
    common = (first - second).var(1, ddof=1).mean()
    own = first.var(1, ddof=1).mean() + second.var(1, ddof=1).mean()
    assert own > 0.05  # else there is no noise to share
    share = float((first != second).mean())
    told = f"variance ratio {common / own:.3f}: {common:.4f} / {own:.4f}; {share:.3f} of {first.size} rewards differ"
    sys.stdout.write(f"\n{told}\n")
    assert common > 0  # the policies are two
    assert common <= 0.5 * own

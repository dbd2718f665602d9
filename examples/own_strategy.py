"""An advantage estimator of your own: one function, whose arguments say what it needs.

    python examples/own_strategy.py     # trains the shipped countdown policy with it for two steps; a few seconds

In a run file it is `algorithm: {advantage: {name: own_strategy:bounded, bound: 0.5}}`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "2")  # before torch is imported: of use to a tiny model,
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # and asleep while they wait, for other programs' sake

import torch
from datasets import Dataset
from torch import Tensor
from trl import GRPOConfig

from evenkeel import CONFIGS, GENERATORS, RewardFunction, RLVRTrainer, build_verifier


def bounded(rewards: Tensor, group_size: int, *, bound: float = 1.0) -> Tensor:
    """Rewards (N,) less their group's median, held within ± ``bound``; NaN = not scored, and stays so."""
    groups = rewards.view(-1, group_size)
    return (groups - groups.nanmedian(1, keepdim=True).values).clamp(-bound, bound).view(-1)


if __name__ == "__main__":
    torch.manual_seed(0)
    rows = GENERATORS["countdown"](part="train", train=64, test=16, seed=1, max_number=12, max_target=50)
    rows = [{**row, "prompt": [{"role": "user", "content": row["prompt"]}]} for row in rows]
    trainer = RLVRTrainer(
        model=str(CONFIGS / "tiny_policy" / "countdown"),
        reward_funcs=RewardFunction(build_verifier("countdown"), "countdown"),
        args=GRPOConfig(
            output_dir="runs/own_strategy",
            per_device_train_batch_size=16,
            num_generations=8,
            max_completion_length=64,
            max_steps=2,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
        ),
        train_dataset=Dataset.from_list(rows),
        advantage=bounded,
    )
    trainer.train()

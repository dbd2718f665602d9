"""TRL's own GRPO example with another import and two more keywords. What differs is marked.

    python examples/plain_trl_script.py

It is for a GPU, and downloads a model of 0.5 B parameters and a data set. On a CPU without
network: examples/minimal.py.
"""

from datasets import load_dataset
from trl.rewards import accuracy_reward

from evenkeel import RLVRTrainer  # in place of: from trl import GRPOTrainer

dataset = load_dataset("trl-lib/DeepMath-103K", split="train")

trainer = RLVRTrainer(
    model="Qwen/Qwen2.5-0.5B-Instruct",
    reward_funcs=accuracy_reward,
    train_dataset=dataset,
    advantage="rloo",  # new
    token_weight={"name": "adv_reweight", "alpha": 0.3},  # new
)
trainer.train()

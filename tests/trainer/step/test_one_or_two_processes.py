"""With the same completions one process and two give the same rewards, advantages and gradients."""

import json
from pathlib import Path

import pytest
import torch

from tests.trainer.training import run_on

SCRIPT = """
import json, os, random, sys
from pathlib import Path
import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOTrainer
from tests.trainer.step.test_reward_noise import ROWS
from tests.trainer.step.without_torch import FirstIsDigit
from tests.trainer.step.test_revisions import early_digit
from tests.trainer.step.test_teacher_logps import digits_with_verdicts
from tests.trainer.training import digit_reward, train
from evenkeel.rewards import RewardFunction
from evenkeel.rewards.noise import RewardNoise
from evenkeel.trainer import RLVRTrainer
from evenkeel.trainer.step.advantages import Advantages

model, folder, cases = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
processes = int(os.environ["WORLD_SIZE"])

def rollouts(prompts, trainer):
    '''Completions that depend on the prompt, on which of its four it is, and on the rollout batch.'''
    seen, ids = {}, []
    for prompt in prompts:
        text = prompt[-1]["content"]
        seen[text] = number = seen.get(text, 0) + 1
        draw = random.Random(f"{text}, {number}, {trainer.state.global_step}")
        ids.append([draw.randrange(5, 24) for _ in range(draw.randrange(2, 8))] + [1])
    tokenizer = trainer.processing_class
    asked = [tokenizer.apply_chat_template(p, add_generation_prompt=True, tokenize=True) for p in prompts]
    asked = [list(each["input_ids"]) if hasattr(each, "keys") else list(each) for each in asked]
    return {"prompt_ids": asked, "completion_ids": ids, "logprobs": None}

seen = {}
rewarded, scored = RLVRTrainer._calculate_rewards, Advantages.write_advantages

def calculated(self, *positional, **keywords):
    found = rewarded(self, *positional, **keywords)
    seen["rewards"].append(found.clone())
    return found

def with_advantages(self, rollout, signals, logs):
    metrics = scored(self, rollout, signals, logs)
    seen["advantages"].append(self.ranks.gathered(rollout.batch["advantages"]).clone())
    return metrics

RLVRTrainer._calculate_rewards, Advantages.write_advantages = calculated, with_advantages

class WithReferences(RLVRTrainer):
    def __init__(self, *positional, **keywords):
        super().__init__(*positional, **{**keywords, "train_dataset": Dataset.from_list(ROWS)})

class Gradients(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        gradients = [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
        seen["gradients"].append(torch.cat(gradients).clone())

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
classes = {"stock": GRPOTrainer, "noisy": WithReferences}
noise = RewardNoise(false_positive=0.4, false_negative=0.4)
rewards = {"scored": digits_with_verdicts, "noisy": RewardFunction(FirstIsDigit(), "digit", noise=noise)}
rewards |= {"partly": early_digit}
for name, asked in cases.items():
    seen = {"rewards": [], "advantages": [], "gradients": []}
    written = {} if asked.get("generates") else {"rollout_func": rollouts}
    trainer_class, reward = classes.get(asked.get("kind"), RLVRTrainer), rewards.get(asked.get("kind"), digit_reward)
    train(
        trainer_class, model, folder, strategies={**asked.get("strategies", {}), **written}, reward=reward,
        callbacks=[Gradients()], per_device_train_batch_size=asked.get("rows", 16) // processes,
        num_iterations=asked.get("num_iterations", 1), max_steps=4,
        optim="sgd", learning_rate=0.5, lr_scheduler_type="constant", max_grad_norm=0.0, **asked.get("settings", {}),
    )
    if os.environ["RANK"] == "0":
        torch.save(seen, folder / f"{name}.pt")
"""
CISPO = {"loss_type": "cispo", "epsilon_high": 1e6}
LOPTI_ETA = 1 / 24
"""The threshold lies where the probabilities of this policy of 24 words do, so that both passes train."""
COMMON = {"generation": "compact", "common_random_numbers": True}
CASES = {
    "stock": {"settings": {"loss_type": "grpo"}, "num_iterations": 2, "kind": "stock"},
    "grpo": {"settings": {"loss_type": "grpo"}, "num_iterations": 2},
    "grpo, token mean": {"settings": {"loss_type": "dapo"}},
    "adv_reweight": {"strategies": {"token_weight": "adv_reweight"}},
    "lopti": {"strategies": {"update_schedule": {"name": "lopti", "eta": LOPTI_ETA}}},
    "lopti, random": {"strategies": {"update_schedule": {"name": "lopti", "eta": LOPTI_ETA, "order": "random"}}},
    "rows over all ranks": {
        "strategies": {"cut": "over_all_ranks"},
        "settings": {"loss_type": "grpo", "steps_per_generation": 2},
    },
    "groups over all ranks": {
        "strategies": {"cut": "over_all_ranks", "keep_groups": "step"},
        "settings": {"steps_per_generation": 2},
    },
    "exchangeable": {"strategies": {"advantage": "exchangeable"}, "settings": {"loss_type": "grpo"}},
    "common_random_numbers": {"strategies": COMMON, "generates": True},
    "rlcsd": {
        "strategies": {"token_weight": {"name": "rlcsd", "temperature": 1.0}, **COMMON},  # 0.02: 50 times the rounding
        "generates": True,
        "kind": "scored",
    },
    "noise": {"strategies": COMMON, "generates": True, "kind": "noisy"},
    "dynamic, a group on both": {
        "strategies": {"prompt_sampler": "dynamic", **COMMON},
        "generates": True,
        "kind": "scored",
        "rows": 12,
    },
    "ibpo, a group on both": {
        "strategies": {"advantage": {"name": "ibpo", "lam": 0.5}, "revision": {"references": 2}, **COMMON},
        "generates": True,
        "kind": "partly",
        "rows": 12,
    },
    "planned": {
        "strategies": {"microbatches": "planned"},
        "settings": {"loss_type": "grpo", "steps_per_generation": 4, "gradient_accumulation_steps": 4},
        "rows": 8,
    },
    "dfpo_min_replace": {"strategies": {"coefficient": "dfpo_min_replace"}, "settings": CISPO, "num_iterations": 2},
}


@pytest.fixture(scope="module")
def trained(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All cases on one process and on two; the folders with what rank 0 saw of each."""
    folders = [tmp_path_factory.mktemp("processes") for _ in (1, 2)]
    for number, folder in enumerate(folders, start=1):
        run_on(number, SCRIPT, tiny_model, folder, json.dumps(CASES))
    return folders


@pytest.mark.slow
def test_the_default_is_stock_trl_bit_for_bit(trained: list[Path]):
    for folder in trained:
        stock, ours = (torch.load(folder / f"{case}.pt")["gradients"] for case in ("stock", "grpo"))
        assert all(map(torch.equal, stock, ours))


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case != "stock"])
def test_rewards_advantages_and_gradients_do_not_depend_on_the_number_of_processes(trained: list[Path], case: str):
    one, two = (torch.load(folder / f"{case}.pt") for folder in trained)
    assert {name: len(values) for name, values in one.items()} == {name: len(values) for name, values in two.items()}
    assert len(one["gradients"]) == 4
    for name in ("rewards", "advantages"):
        for alone, together in zip(one[name], two[name], strict=True):
            assert alone.nan_to_num().abs().max() > 0
            width = min(alone.shape[-1], together.shape[-1]) if alone.dim() > 1 else None
            assert torch.allclose(alone[..., :width], together[..., :width], rtol=0, atol=1e-6, equal_nan=True)
    for alone, together in zip(one["gradients"], two["gradients"], strict=True):
        assert alone.abs().max() > 1e-4
        assert (alone - together).abs().max() <= 1e-6

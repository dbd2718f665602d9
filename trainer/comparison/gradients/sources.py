"""Where a bench's rollouts come from: a run's directory, or batches sampled for it from a configuration's policy."""

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.comparison.gradients.replay import Recipe, Row
from trainer.comparison.rollouts import RecordedRollouts
from trainer.run.callbacks import Rollouts
from trainer.run.config import RunConfig, grpo_config, load_config
from trainer.run.rewards import Rewards
from trainer.run.rows import load_data
from trainer.run.schedule import optimizer_steps_per_block
from trainer.run.tokenizer import load_tokenizer
from trainer.run.training import build_trainer


def recipe_of(config: RunConfig) -> Recipe:
    """What of a configuration decides the gradients of its rollouts."""
    args = grpo_config(config, 1)
    weights = {reward.label: reward.weight for reward in config.rewards}
    return Recipe(args.num_generations, args.temperature, weights, max(args.max_steps, 1))


def loss_of(config: RunConfig) -> tuple[str, int]:
    """The configuration's loss, and the longest completion that it allows."""
    args = grpo_config(config, 1)
    return args.loss_type, args.max_completion_length


def recorded_batches(run: Path, most: int) -> Iterator[list[Row]]:
    """The first ``most`` batches that a run recorded, those nearest to the policy that it started from.

    Raises:
        RolloutsError: there are none.
    """
    recorded = RecordedRollouts(run)
    for table in recorded.batches(numbers=list(recorded.files)[:most]):
        yield table.to_pylist()


def sampled_batches(config_path: Path, rewards: Rewards, batches: int) -> Iterator[list[Row]]:
    """So many rollout batches of one policy: the configuration's run with learning rate 0, in a temporary directory."""
    with tempfile.TemporaryDirectory() as directory:
        fixed = {
            "trl.save_strategy": "no",
            "evaluation.before": "false",
            "evaluation.after": "false",
            "logging.report_to": "none",
            "logging.rollouts": "all",
            "output_dir": directory,
        }
        config = load_config(config_path, [f"{key}={value}" for key, value in fixed.items()])
        args = grpo_config(config, 1)
        args.max_steps, args.learning_rate = batches * optimizer_steps_per_block(args), 0.0  # no run file may say 0
        verifiers = {reward.label: rewards.build_verifier(reward.verifier) for reward in config.rewards}
        rows = load_data(config, verifiers, rewards, config_path.resolve().parent)
        tokenizer, prefilled = load_tokenizer(config)
        functions = rewards.reward_functions(verifiers, tasks=config.reward_tasks, prefilled_thought=prefilled)
        with contextlib.redirect_stdout(io.StringIO()):
            trainer = build_trainer(config, args, rows, functions, tokenizer)
            trainer.add_callback(Rollouts(trainer, Path(directory), config.logging))
            trainer.train()
        yield from recorded_batches(Path(directory), batches)


def policy_of(weights: str) -> Any:
    """A policy in float32, whose gradients are taken.

    Raises:
        OSError: there is none of that name.
    """
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32)

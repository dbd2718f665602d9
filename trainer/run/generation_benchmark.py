"""How long transformers takes to generate, in each way that a run's file can ask for: in turn, in one process."""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from trainer.run.config import evaluation_arguments, load_config
from trainer.run.evaluation import evaluation_trainer
from trainer.run.rewards import Rewards
from trainer.run.rows import load_held_out
from trainer.run.tokenizer import load_tokenizer

WAYS: dict[str, list[str]] = {
    "trl": ["speed.generation=trl"],
    "compact": ["speed.generation=compact"],
    "static cache": ["speed.generation=trl", "trl.cache_implementation=static"],
    "continuous batching": ["speed.generation=trl", "trl.use_transformers_continuous_batching=true"],
}
"""Name → overrides of the file; the first is what the others are compared with."""


@dataclass
class Measured:
    """Seconds of each round that counts, and how often the first way took as long; tokens of the last."""

    seconds: list[float] = field(default_factory=list)
    times_faster: list[float] = field(default_factory=list)
    token_ids: list[list[int]] = field(default_factory=list)
    same: bool = True
    """Whether every round gave the first way's tokens."""

    def __str__(self) -> str:
        ratio = statistics.median(self.times_faster)
        spread = f"[{min(self.times_faster):.2f}, {max(self.times_faster):.2f}]"
        return f"{statistics.median(self.seconds):>9.2f}{ratio:>8.2f} {spread:<16}{'yes' if self.same else 'no'}"


def compared_generation(
    config_path: str, overrides: Sequence[str], rewards: Rewards, *, ways: Sequence[str], rows: int, rounds: int
) -> dict[str, Measured]:
    """Each way's time for ``rows`` completions: the file's held-out prompts, each ``trl.num_generations`` times.

    A round before the first one warms up and does not count. All ways of a round draw from the same seed, and they take
    turns in an order that turns with the round; a ratio is taken within a round.
    """
    prompts: list[Any] = []
    trainers = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            config = load_config(config_path, [*overrides, *WAYS[way], "trl.use_vllm=false"], evaluation_only=True)
            verifiers = {reward.label: rewards.build_verifier(reward.verifier) for reward in config.rewards}
            sets = load_held_out(config, verifiers, rewards, Path(config_path).resolve().parent)
            tokenizer, prefilled = load_tokenizer(config)
            functions = rewards.reward_functions(verifiers, tasks=config.reward_tasks, prefilled_thought=prefilled)
            args = evaluation_arguments(config, folder)
            trainers[way] = evaluation_trainer(config, args, sets, functions, tokenizer)
            if not prompts:
                repeats = config.trl.get("num_generations", 8)
                questions = [row["prompt"] for dataset in sets.values() for row in dataset]
                prompts = [prompt for prompt in questions for _ in range(repeats)][:rows]
        measured = {way: Measured() for way in ways}
        for number in range(rounds + 1):
            turn = number % len(ways)
            taken = {}
            for way in (*ways[turn:], *ways[:turn]):
                torch.manual_seed(number)
                started = time.perf_counter()
                measured[way].token_ids = trainers[way]._generate(prompts)[1]
                taken[way] = time.perf_counter() - started
            for way, result in measured.items():
                result.same &= result.token_ids == measured[ways[0]].token_ids
                if number:
                    result.seconds.append(taken[way])
                    result.times_faster.append(taken[ways[0]] / taken[way])
    return measured

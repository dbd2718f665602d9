"""How long transformers takes to generate, in each way that a run's file can ask for: in turn, in one process."""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evenkeel.trainer.run.config import evaluation_arguments
from evenkeel.trainer.run.evaluation import evaluation_trainer
from evenkeel.trainer.run.experiment import Experiment
from scripts.benchmarks.rounds import in_turn, round_ratios, shown_ratio

WAYS: dict[str, list[str]] = {
    "trl": [],
    "compact": [],
    "static cache": ["trl.cache_implementation=static"],
    "continuous batching": ["trl.use_transformers_continuous_batching=true"],
}
"""Name → overrides of the file, all but "compact" with EVENKEEL_OFF=compact; the others are compared with the first."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this benchmark alone is asked."""
    command.add_argument("config", help="YAML file with held-out rows")
    command.add_argument("overrides", nargs="*", metavar="key=value", help="dotted settings that replace the file's")
    command.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="default: all")
    command.add_argument("--rows", type=int, default=128, help="completions of a round; default 128")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds and ratios of each way, with a table; ``same``: it gave the first way's tokens in every round."""
    chosen = {"ways": options.ways, "rows": options.rows, "rounds": options.rounds}
    timings = compared_generation(options.config, options.overrides, **chosen)
    first = timings[options.ways[0]]
    lengths = [len(ids) for ids in first.token_ids]
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{len(lengths)} completions of {sum(lengths) / len(lengths):.0f} tokens, the longest of {max(lengths)}")
    print(f"{'way':<22}{'seconds':>9}   {'× faster':<21}same")
    measured = {}
    for way, timing in timings.items():
        faster = round_ratios(first.seconds, timing.seconds)
        same = "yes" if timing.same else "no"
        print(f"{way:<22}{statistics.median(timing.seconds):>9.2f}   {shown_ratio(faster):<21}{same}")
        measured[way] = {"seconds": timing.seconds, "faster_than_first": faster, "same": timing.same}
    return measured


@dataclass
class Timing:
    """Seconds of each round that counts; tokens of the last one."""

    seconds: list[float] = field(default_factory=list)
    token_ids: list[list[int]] = field(default_factory=list)
    same: bool = True
    """Whether every round gave the first way's tokens."""


def compared_generation(
    config_path: str, overrides: Sequence[str], *, ways: Sequence[str], rows: int, rounds: int
) -> dict[str, Timing]:
    """Each way's time for ``rows`` completions: the file's held-out prompts, each ``trl.num_generations`` times.

    A round before the first one warms up and does not count. All ways of a round draw from the same seed, and they take
    turns in an order that turns with the round; a ratio is taken within a round.
    """
    prompts: list[Any] = []
    trainers = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in ways:
            settings = [*overrides, *WAYS[way], "trl.use_vllm=false"]
            experiment = Experiment.of_file(config_path, settings, evaluation_only=True)
            args = evaluation_arguments(experiment.config, folder)
            os.environ["EVENKEEL_OFF"] = "" if way == "compact" else "compact"
            trainers[way] = evaluation_trainer(experiment, args)
            if not prompts:
                repeats = experiment.config.trl.get("num_generations", 8)
                questions = [row["prompt"] for dataset in experiment.held_out.values() for row in dataset]
                prompts = [prompt for prompt in questions for _ in range(repeats)][:rows]
        measured = {way: Timing() for way in ways}
        for number in range(rounds + 1):
            taken = {}
            for way in in_turn(ways, number):
                torch.manual_seed(number)
                started = time.perf_counter()
                measured[way].token_ids = trainers[way]._generate(prompts)[1]
                taken[way] = time.perf_counter() - started
            for way, result in measured.items():
                result.same &= result.token_ids == measured[ways[0]].token_ids
                if number:
                    result.seconds.append(taken[way])
    return measured

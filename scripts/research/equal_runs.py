"""How often the verdict on each outcome is false: of real equal runs, some called a variant and others its baseline.

    python -m scripts.research.equal_runs --runs 64 --pool equal_runs.json     # trains them, or goes on with it
    python -m scripts.research.equal_runs --pool tests/trainer/lab/reports/equal_runs.json

The pool is runs of one setting that differ in their seeds alone: 8 rollout batches, five evaluations of 64 problems of
countdown. A comparison takes 2 × `--seeds` of them, all different; shown is the share of 1,000 with a verdict, which
should be 5 % at most, with its 95 % interval: the percentile bootstrap over the runs of the pool. Without `--runs` the
pool's file is read and nothing is trained. One CPU core; 15 seconds of it a run.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.outcomes import (
    OUTCOMES,
    entropy_changes,
    right_clusters,
    tokens_curve,
    tokens_reached,
)
from evenkeel.trainer.lab.reports.run_files import read_runs
from evenkeel.trainer.lab.statistics.intervals import StatisticsError, paired_difference
from evenkeel.trainer.lab.statistics.verdict import outcome_of
from evenkeel.trainer.lab.sweeps import commands
from evenkeel.trainer.run.config.yaml_document import write
from scripts.program import run

Floats = NDArray[np.float64]
Pool = dict[str, Any]
COMPARISONS, REPLICATES = 1_000, 200
SETTINGS: dict[str, Any] = {
    "extends": "configs/quickstart.yaml",
    "algorithm": {"prompts_per_rollout": 8, "sequences_per_update": 32},
    "trl": {
        "num_generations": 8,
        "per_device_train_batch_size": 32,
        "max_completion_length": 64,
        "max_steps": 16,
        "learning_rate": 3e-4,
        "beta": 1e-12,
        "save_steps": 16,
    },
    "evaluation": {"samples": 4, "every_steps": 4, "batch_size": 256},
    "logging": {"report_to": "none", "rollouts": "off"},
}
ROWS = {"name": "countdown", "train": 1024, "test": 64, "seed": 1, "max_number": 12, "max_target": 50}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command line."""
    command.add_argument("--pool", type=Path, required=True, help="JSON file of the runs' numbers")
    command.add_argument("--runs", type=int, help="train so many, and write the pool")
    command.add_argument("--folder", type=Path, default=Path("runs/equal_runs"), help="of the runs")
    command.add_argument("--seeds", type=int, default=5, help="of each variant of a comparison")


def measure(options: argparse.Namespace) -> dict[str, tuple[float, float, float]]:
    """Outcome → share of false verdicts, and the ends of its interval."""
    if options.runs:
        if trained(options.folder, options.runs):
            raise Refusal("Not all runs have finished. The same command goes on with them.")
        text = json.dumps(pool_of(options.folder / "sweep"))
        options.pool.write_text(text.replace("NaN", "null") + "\n")
    pool = json.loads(options.pool.read_text())
    rates = {}
    print("| outcome | false verdicts | 95 % | runs |\n| --- | --- | --- | --- |")
    for name in pool:
        rate = false_rate(pool, name, options.seeds, np.random.default_rng(0))
        low, high = interval(pool, name, options.seeds)
        rates[name] = rate, low, high
        print(f"| `{name}` | {rate:.1%} | {low:.1%} to {high:.1%} | {len(usable(pool, name))} |", flush=True)
    return rates


def trained(folder: Path, runs: int) -> int:
    """Run the sweep of one variant with so many seeds; its exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {part: {"generator": {**ROWS, "part": part}} for part in ("train", "test")}
    settings = {**SETTINGS, "extends": str(Path(SETTINGS["extends"]).absolute()), "data": rows}
    (folder / "base.yaml").write_text(write(settings))
    sweep = {"config": "base.yaml", "baseline": "grpo", "variants": {"grpo": {}}, "outcomes": [*OUTCOMES]}
    sweep |= {"seeds": [*range(runs)], "output_dir": str(folder / "sweep")}
    (folder / "sweep.yaml").write_text(write(sweep))
    return commands.run(folder / "sweep.yaml")


def pool_of(sweep: Path) -> Pool:
    """Outcome → its value of each run, or values by item; where these depend on other runs, what it takes of each."""
    runs = read_runs(sweep).all
    found: Pool = {name: outcome.measure(runs, "test").round(5).tolist() for name, outcome in OUTCOMES.items()}
    found["tokens_to_threshold"] = [[[*map(float, side)] for side in tokens_curve(each, "test")] for each in runs]
    found["drift_between_right_answers"] = [dict(right_clusters(each, "test")) for each in runs]
    return found


def values(pool: Pool, name: str, chosen: Sequence[int]) -> Floats:
    """The outcome of some runs of the pool, as `Outcome.measure` has it of these runs."""
    rows = [pool[name][each] for each in chosen]
    if name == "drift_between_right_answers":
        return entropy_changes([{item: (tuple(old), tuple(new)) for item, (old, new) in row.items()} for row in rows])
    return tokens_reached(rows) if name == "tokens_to_threshold" else np.array(rows, float)


def usable(pool: Pool, name: str) -> Sequence[int]:
    """Places of the runs that have a value."""
    return [place for place in range(len(pool[name])) if not np.isnan(values(pool, name, [place])).all()]


def found(pool: Pool, name: str, chosen: Sequence[int], effect: float = 0.0) -> bool:
    """Whether the first half of the runs, shifted by ``effect``, is called better or worse than the second."""
    ours, theirs = np.split(values(pool, name, chosen), 2)
    try:
        return outcome_of(paired_difference(ours + effect, theirs)) in ("better", "worse")
    except StatisticsError:  # no item with a value in all of them
        return False


def false_rate(
    pool: Pool, name: str, seeds: int, rng: np.random.Generator, comparisons: int = COMPARISONS, weights: Any = None
) -> float:
    """The share of comparisons of equals with a verdict; ``weights``: how often a run may be drawn, (runs,)."""
    runs = usable(pool, name)
    draws = [rng.choice(runs, 2 * seeds, replace=False, p=weights).tolist() for _ in range(comparisons)]
    return float(np.mean([found(pool, name, chosen) for chosen in draws]))


def interval(pool: Pool, name: str, seeds: int) -> tuple[float, float]:
    """The 95 % percentile bootstrap of `false_rate` over the runs, of 200 replicates of 250 comparisons."""
    rng = np.random.default_rng(1)
    number = len(usable(pool, name))
    rates: list[float] = []
    while len(rates) < REPLICATES:
        counts = rng.multinomial(number, np.full(number, 1 / number))
        if np.count_nonzero(counts) >= 2 * seeds:
            rates.append(false_rate(pool, name, seeds, rng, 250, counts / number))
    low, high = np.percentile(rates, (2.5, 97.5))
    return float(low), float(high)


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))

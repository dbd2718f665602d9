"""What branches save: variants from one checkpoint with common random numbers, against runs of their own without."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from evenkeel.errors import Refusal
from evenkeel.trainer.lab import statistics
from evenkeel.trainer.lab.reports.comparison import datasets_of
from evenkeel.trainer.lab.reports.run_files import RecordedRuns, read_runs
from evenkeel.trainer.lab.sweeps import commands
from evenkeel.trainer.run.config import load_config
from evenkeel.trainer.run.experiment import Experiment

BASELINE, PLANTED = "grpo", "rate_by_1.5"
VARIANTS: dict[str, dict[str, Any]] = {
    BASELINE: {},
    "ar": {"algorithm.token_weight": {"name": "adv_reweight", "alpha": 0.2}},
    "lopti": {"algorithm.update_schedule": {"name": "lopti", "eta": 0.4}},
    "exchangeable": {"algorithm.advantage": "exchangeable", "trl.loss_type": "grpo"},
    "dfpo_orthogonal": {
        "algorithm.advantage": "dr_grpo",
        "algorithm.coefficient": {"name": "dfpo_orthogonal", "weight": "product"},
        "trl.loss_type": "cispo",
    },
    "nsr": {"algorithm.advantage": "nsr"},
}
COMMON = {"common_random_numbers": True}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this program is asked."""
    base = Path("configs/sweeps/laptop_base.yaml")
    command.add_argument("config", nargs="?", type=Path, default=base, help=f"YAML of a run; default {base}")
    command.add_argument(
        "--variants", nargs="+", choices=[*VARIANTS, PLANTED], help="default all; the baseline is run too"
    )
    command.add_argument("--learning-rate", type=float, help="of the baseline; default the file's")
    command.add_argument("--seeds", type=int, default=5, help="default 5")
    command.add_argument("--rollouts", type=int, default=20, help="rollout batches of every run; default 20")
    command.add_argument(
        "--branch-at", type=int, default=10, help="rollout batch that the branches begin at; default 10"
    )
    command.add_argument("--parallel", type=int, default=2, help="runs at a time; default 2")
    command.add_argument("--output", type=Path, default=Path("runs/branches"), help="default runs/branches")


def measure(options: argparse.Namespace) -> None:
    """Run what is not there yet, and print the table."""
    if not 0 < options.branch_at < options.rollouts:
        raise Refusal(f"--branch-at {options.branch_at} lies outside the {options.rollouts} rollout batches of a run.")
    base = load_config(options.config)
    rate = base.trl["learning_rate"] if options.learning_rate is None else options.learning_rate
    variants = {**VARIANTS, PLANTED: {"trl.learning_rate": 1.5 * rate}}
    variants = {name: variants[name] for name in dict.fromkeys((BASELINE, *(options.variants or variants)))}
    step = options.branch_at * Experiment(base, options.config.parent).steps_per_rollout
    shared = {
        "baseline": BASELINE,
        "executor": {"kind": "local", "parallel": options.parallel},
        "environment": {"OMP_NUM_THREADS": "1"},
        "retries": 1,
    }
    seeds = [*range(options.seeds)]
    file: dict[str, Any] = {"extends": str(options.config.absolute()), "trl": {"learning_rate": rate}}
    scratch = _written(options.output / "base.yaml", file)
    parent = _written(options.output / "parent.yaml", {**file, **COMMON, "trl": {**file["trl"], "save_steps": step}})
    parents = [options.output / "parents" / f"{BASELINE}-s{seed}" / f"run@{step}" for seed in seeds]
    for name, sweep in {
        "scratch": {"config": str(scratch), "seeds": seeds, "rollouts": options.rollouts},
        "parents": {"config": str(parent), "seeds": seeds, "rollouts": options.branch_at, "variants": {BASELINE: {}}},
        "branches": {"from": [*map(str, parents)], "rollouts": options.rollouts},
    }.items():
        described = {"variants": variants, **shared, "output_dir": str(options.output / name), **sweep}
        if status := commands.run(_written(options.output / f"{name}.yaml", described)):
            raise Refusal(f"The runs of {options.output / name} ended with status {status}. Give the command again.")
    arms = len(variants)
    cost = {"scratch": arms * options.rollouts}
    cost["branches"] = options.branch_at + arms * (options.rollouts - options.branch_at)
    print("\n".join(table({name: read_runs(options.output / name) for name in cost}, cost)))


def table(runs: Mapping[str, RecordedRuns], cost: Mapping[str, int]) -> list[str]:
    """Markdown: of every variant the paired difference in final accuracy, both ways, and the ratio of variances.

    Args:
        runs: ``scratch`` and ``branches``, of the same variants and seeds.
        cost: rollout batches that all variants of one seed take; the last column is the ratio times that of these.
    """
    head = ("variant", "from scratch", "branches", "variance ratio", "at equal compute")
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for variant in (name for name in runs["scratch"].by_variant if name != BASELINE):
        by_way = {way: differences(each, variant) for way, each in runs.items()}
        shown = [_shown(by_way[way]) for way in ("scratch", "branches")]
        scratch = by_way["scratch"].var(ddof=1)
        ratio = by_way["branches"].var(ddof=1) / scratch if scratch > 0 else np.nan
        equal = ratio * cost["branches"] / cost["scratch"]
        lines.append(f"| {variant} | {' | '.join(shown)} | {ratio:.2f} | {equal:.2f} |")
    return [
        *lines,
        "",
        f"Rollout batches for a seed of all: {cost['scratch']} from scratch, {cost['branches']} branches.",
    ]


def differences(runs: RecordedRuns, variant: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Of each seed the final held-out accuracy less the baseline's."""
    dataset = datasets_of(runs)[0]
    final = {
        name: {seed: points[max(points)] for seed, run in by_seed.items() if (points := run.held_out()[dataset])}
        for name, by_seed in runs.by_variant.items()
    }
    seeds: Sequence[int] = sorted({*final[variant]} & {*final[BASELINE]})
    return np.array([final[variant][seed] - final[BASELINE][seed] for seed in seeds])


def _shown(values: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    """The mean with its interval, the first number of seeds at which it leaves out 0, and how many would be needed."""
    verdicts = [statistics.verdict(statistics.mean_estimate(values[:seeds])) for seeds in range(1, len(values) + 1)]
    seen = [seeds for seeds, each in enumerate(verdicts, start=1) if each.outcome in ("better", "worse")]
    needed = verdicts[-1].seeds_needed
    words = f"seen with {seen[0]} seeds" if seen else f"not seen, about {needed} seeds" if needed else "not seen"
    estimate = statistics.mean_estimate(values)
    return f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}], {words}"


def _written(file: Path, content: Mapping[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    YAML(typ="safe").dump(dict(content), file)
    return file

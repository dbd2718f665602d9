"""Healthy runs, and what the rules of `evenkeel.trainer.lab.doctor` say about them."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from evenkeel.trainer.command import positive
from evenkeel.trainer.lab.doctor.log import Log
from evenkeel.trainer.lab.doctor.readers import Record, read
from evenkeel.trainer.lab.doctor.rules import WINDOW, Examination
from scripts.research.short_runs import short_run

CONFIG = Path("configs/quickstart.yaml")
SHORT = {
    "trl.max_steps": 12,
    "trl.num_generations": 4,
    "trl.max_completion_length": 64,
    "algorithm.prompts_per_rollout": 4,
    "algorithm.sequences_per_update": 16,
    "evaluation.every_steps": 6,
    "data.test.generator.test": 64,
    "logging.samples_every_steps": 1000,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "grpo": {},
    **{name: {"algorithm.advantage": name} for name in ("dr_grpo", "rloo", "reinforce_pp", "maxrl", "opo", "vl_norm")},
    "exchangeable_prefix_tree": {"algorithm.advantage": "exchangeable_prefix_tree"},
    "adv_reweight": {"algorithm.token_weight": "{name: adv_reweight, alpha: 0.2}"},
    "top_entropy": {"algorithm.token_weight": "top_entropy"},
    "lopti": {"algorithm.update_schedule": "{name: lopti, eta: 0.4}"},
    "dynamic": {"algorithm.prompt_sampler": "dynamic"},
    "kl": {"trl.beta": 0.04},
    "two_iterations": {"trl.num_iterations": 2},
    "gspo": {
        "trl.num_iterations": 2,
        "trl.importance_sampling_level": "sequence",
        "trl.epsilon": "3e-4",
        "trl.epsilon_high": "4e-4",
    },
}


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this program is asked."""
    command.add_argument("--output", type=Path, default=Path("runs/healthy"), help="default %(default)s")
    command.add_argument("--seeds", type=positive(int), default=4, help="the first half tunes; default %(default)s")


def measure(options: argparse.Namespace) -> None:
    """Train what is not there yet, and print both halves."""
    tunes = options.seeds // 2
    halves: tuple[list[Record], list[Record]] = ([], [])
    for seed in range(options.seeds):
        for name, settings in VARIANTS.items():
            file = options.output / f"{name}-s{seed}" / "trainer_state.json"
            if not file.exists():
                with short_run(CONFIG, {**SHORT, **settings, "seed": seed}) as trainer:
                    trainer.train()
                file.parent.mkdir(parents=True)
                trainer.state.save_to_json(str(file))
            halves[seed >= tunes].append(read(file))
    print("| of one run | most extreme run | median run | threshold |\n| --- | --- | --- | --- |")
    shown = [statistics(record) for record in halves[0]]
    for name, threshold in THRESHOLDS.items():
        found = [each[name] for each in shown if name in each]
        if found:
            extreme = min(found) if threshold.startswith("below") else max(found)
            print(f"| {name} | {extreme:.3f} | {median(found):.3f} | {threshold} |")
    for records, seeds in zip(halves, (range(tunes), range(tunes, options.seeds)), strict=True):
        alarms = [
            f"{record.path.parent.name}: {finding.rule.name}, step {finding.first_step}: {finding.text}"
            for record in records
            for finding in Examination().add_all(record.lines).findings.values()
        ]
        which = "tuned on" if records is halves[0] else "not tuned on"
        print(f"\nFalse alarms on {len(records)} healthy runs, seeds {seeds[0]} to {seeds[-1]}, {which}: {len(alarms)}")
        print("\n".join(alarms))


THRESHOLDS = {
    "largest mean share of dead groups": "0.75",
    "largest mean share of truncated completions": "0.5",
    "largest mean share of clipped tokens": "0.75",
    "largest median KL": "1",
    "smallest entropy, as a share of the start": "below 0.1",
    "largest length, as a share of the start": "2",
    "smallest length, as a share of the start": "below 0.5",
    "most lines in a row with learning rate 0": "3",
    "most lines in a row with gradient 0": "5",
}


def statistics(record: Record) -> dict[str, float]:
    """What the rules compare with their thresholds, the most extreme of a run."""
    means: dict[str, list[float]] = {}
    medians: dict[str, list[float]] = {}
    starts: dict[str, list[float]] = {}
    log = Log()
    for step, line in record.lines:
        log.add(step, line)
        for name in log.values:
            if last := log.last(name, WINDOW):
                means.setdefault(name, []).append(mean(last))
                medians.setdefault(name, []).append(median(last))
                if first := log.first(name, 2 * WINDOW)[:WINDOW]:
                    starts.setdefault(name, []).append(median(last) / (median(first) or 1.0))
    zeros = {name: [*_zeros_in_a_row(log.values[name])] for name in ("learning_rate", "gradient_norm")}
    wanted = {
        "largest mean share of dead groups": means.get("dead_groups"),
        "largest mean share of truncated completions": means.get("truncated"),
        "largest mean share of clipped tokens": means.get("clipped"),
        "largest median KL": medians.get("kl"),
        "smallest entropy, as a share of the start": [-value for value in starts.get("entropy", [])],
        "largest length, as a share of the start": starts.get("length"),
        "smallest length, as a share of the start": [-value for value in starts.get("length", [])],
        "most lines in a row with learning rate 0": zeros["learning_rate"],
        "most lines in a row with gradient 0": zeros["gradient_norm"],
    }
    return {name: abs(max(values)) for name, values in wanted.items() if values}


def _zeros_in_a_row(values: list[float]) -> Iterator[float]:
    run = 0
    for value in values:
        run = run + 1 if value == 0 else 0
        yield float(run)

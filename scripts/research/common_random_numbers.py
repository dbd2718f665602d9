"""What common random numbers are worth: how much less paired differences of two variants vary, early in training."""

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.statistics import StatisticsError
from evenkeel.trainer.run.schedule import optimizer_steps_per_block
from scripts.research.short_runs import short_run

Floats = NDArray[np.float64]
MEASURES = {"training reward": "reward", "held-out accuracy": "eval_test/avg@1"}
"""What is compared → its metric."""
RESAMPLES = 4_000
VARIANT = ["algorithm.token_weight={name: adv_reweight, alpha: 0.2}"]


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What this program is asked."""
    command.add_argument("config", nargs="?", type=Path, default=Path("configs/quickstart.yaml"), help="YAML of a run")
    command.add_argument("--variant", action="append", metavar="key=value", help=f"what differs; else {VARIANT[0]}")
    command.add_argument("--seeds", type=int, default=8, help="default 8")
    command.add_argument("--rollouts", type=int, default=3, help="rollout batches of every run; default 3")


def measure(options: argparse.Namespace) -> None:
    """Print the table; how far it is goes to the other stream."""
    counts = {"seeds": options.seeds, "rollouts": options.rollouts}
    report = partial(print, file=sys.stderr, flush=True)
    print("\n".join(noise_table(options.config, options.variant or VARIANT, **counts, report=report)))


def noise_table(
    config_path: Path,
    variant: Sequence[str],
    *,
    seeds: int,
    rollouts: int,
    report: Callable[[str], Any],
) -> list[str]:
    """A Markdown table: standard deviations over seeds of paired differences, with both kinds of noise, and the ratio.

    Without common noise the variants draw from torch's stream at equal seeds.

    Every seed trains the run file and the variant (dotted overrides), with and without common random numbers. The first
    rollout batch is left out: before the first update both variants are one policy.

    Raises:
        Refusal: fewer than three seeds, or than two rollout batches.
    """
    if seeds < 3 or rollouts < 2:
        raise Refusal(
            f"{seeds} seeds and {rollouts} rollout batches: a variance over seeds wants three of them at least, and "
            "variants differ from the second batch on. Write --seeds 8 --rollouts 3."
        )
    found: dict[bool, list[dict[str, Floats]]] = {False: [], True: []}
    for seed in range(seeds):
        for common in (False, True):
            pair = [
                _measured(config_path, {**settings, **_fixed(seed, rollouts, common=common)})
                for settings in ({}, dict(each.split("=", 1) for each in variant))
            ]
            found[common].append({name: pair[1][name] - pair[0][name] for name in MEASURES})
            report(f"seed {seed}, {'common noise' if common else 'stream of torch'}")
    lines = ["| difference | batch | sd, torch's stream | sd, common | variance ratio [95 %] |", "|" + " --- |" * 5]
    for name in MEASURES:
        own, common_noise = (np.array([each[name] for each in found[common]]) for common in (False, True))
        for place in range(own.shape[1]):
            lines.append(_line(name, str(place + 2), own[:, [place]], common_noise[:, [place]]))
        lines.append(_line(name, "all", own, common_noise))
    return lines


def variance_ratio(own: Floats, common: Floats, seed: int = 0) -> tuple[float, float, float]:
    """``Var(common) / Var(own)`` of differences (S, P), variances over seeds, summed over P points; and its interval.

    The interval is the 95 % percentile bootstrap over seeds, which stay pairs: rough at few seeds.

    Raises:
        StatisticsError: the differences do not vary without common random numbers.
    """
    if not float(own.var(0, ddof=1).sum()) > 0:
        raise StatisticsError("The differences do not vary from seed to seed: the variants are one. Name others.")
    draws = np.random.default_rng(seed).integers(len(own), size=(RESAMPLES, len(own)))
    below = own[draws].var(1, ddof=1).sum(-1)
    ratios = np.divide(common[draws].var(1, ddof=1).sum(-1), below, out=np.full(RESAMPLES, np.nan), where=below > 0)
    low, high = np.nanquantile(ratios, [0.025, 0.975])
    return float(common.var(0, ddof=1).sum() / own.var(0, ddof=1).sum()), float(low), float(high)


def _line(name: str, batch: str, own: Floats, common: Floats) -> str:
    spreads = [math.sqrt(values.var(0, ddof=1).mean()) for values in (own, common)]
    if not spreads[0] > 0:  # the variants have drawn the same so far, by torch's stream too
        return f"| {name} | {batch} | {spreads[0]:.4f} | {spreads[1]:.4f} | – |"
    ratio, low, high = variance_ratio(own, common)
    return f"| {name} | {batch} | {spreads[0]:.4f} | {spreads[1]:.4f} | {ratio:.2f} [{low:.2f}, {high:.2f}] |"


def _fixed(seed: int, rollouts: int, *, common: bool) -> dict[str, Any]:
    return {
        "seed": seed,
        "common_random_numbers": str(common).lower(),
        "trl.max_steps": rollouts,
        "trl.logging_steps": 1,
        "evaluation.before": "false",
        "evaluation.every_steps": 1,
        "evaluation.samples": 1,
        "evaluation.greedy": "false",
    }


def _measured(config_path: Path, settings: Mapping[str, Any]) -> dict[str, Floats]:
    """Measure → its values behind the first rollout batch (rewards of batches 2 …, evaluations after steps 1 …)."""
    with short_run(config_path, settings) as trainer:
        block = optimizer_steps_per_block(trainer.args, trainer.strategies.schedule.num_passes)
        trainer.args.max_steps *= block  # what the settings count is rollout batches
        trainer.args.eval_steps *= block
        trainer.train()
    series = {
        name: [entry[key] for entry in trainer.state.log_history if key in entry] for name, key in MEASURES.items()
    }
    count = int(settings["trl.max_steps"]) - 1
    return {
        "training reward": np.array(series["training reward"][1 : count + 1]),
        "held-out accuracy": np.array(series["held-out accuracy"][:count]),
    }

"""Figures 1e, 1f and 3 of arXiv 2505.12929 on three tiny policies, with intervals over seeds.

    python -m scripts.research.update_figures runs/figures       # measures what is not there yet, prints the tables
    python -m scripts.research.update_figures runs/figures --no-run > configs/claims/update_figures.md

Stated before the runs: (1) of the sure right tokens, those with π_old ≥ ¾ and A > 0, more rise after an update by
Lopti than by AR, and by AR than by GRPO; (2) an update by the rarest quarter alone moves frozen tokens further,
relative to an update by all, than one by the surest quarter alone. Each policy takes one plain SGD step on fresh
rollouts of each seed. Some three minutes of processor time for each policy, seed and rate.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.errors import Refusal
from evenkeel.trainer.evaluation.shares import Estimate
from evenkeel.trainer.lab.gradients.outcomes import SETS
from evenkeel.trainer.lab.statistics.intervals import StatisticsError, mean_estimate
from scripts.program import run
from scripts.reference import table

POLICIES = {
    "countdown": "quickstart",
    "two people": "knights_knaves/tiny_cpu",
    "three people": "sweeps/docket_knights_three_base",
}
"""Policy → its run file; that of three people does not ship, and the file says what makes it."""
STRATEGIES = ("grpo", "adv_reweight", "lopti")
RATES = (0.3, 1e-4)
"""Of plain SGD: one whose step moves probabilities as far as a step of Adam does in these run files, and theirs."""
SURE = SETS[-1]
PAIRS = (("adv_reweight", "grpo"), ("lopti", "grpo"), ("lopti", "adv_reweight"))
HEAD = (
    "policy",
    "seeds",
    "sure tokens that rose, GRPO",
    "AR − GRPO",
    "Lopti − GRPO",
    "Lopti − AR",
    "frozen tokens moved by the rarest quarter",
    "by the surest",
    "rarest − surest",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command line."""
    command.add_argument("folder", type=Path, help="for the measurements")
    command.add_argument("--seeds", type=int, default=3, help="default: 3")
    command.add_argument("--batches", type=int, default=4, help="rollout batches of a measurement; default: 4")
    command.add_argument("--no-run", action="store_true", help="measure nothing")


def measure(options: argparse.Namespace) -> dict[float, dict[str, list[Any]]]:
    """Rate → policy → the content of each seed's ``figures.json``, with a table a rate.

    Raises:
        Refusal: a measurement failed.
    """
    measured = {}
    for rate in RATES:
        found: dict[str, list[Any]] = {name: [] for name in POLICIES}
        for seed in range(options.seeds):
            for name, config in POLICIES.items():
                folder = options.folder / f"{name.replace(' ', '_')}-{seed}-{rate:g}"
                file = folder / "figures.json"
                if not file.exists() and not options.no_run:
                    its = ["--learning-rate", str(rate), "--batches", str(options.batches), "--to", str(folder)]
                    words = ["gradients", config, f"seed={seed}", "--figures", "--strategies", ",".join(STRATEGIES)]
                    if subprocess.run([sys.executable, "-m", "evenkeel", *words, *its]).returncode:
                        raise Refusal(f"evenkeel {' '.join([*words, *its])} failed.")
                if file.exists():
                    found[name].append(json.loads(file.read_text()))
        print(f"\nLearning rate {rate:g}\n\n{by_policy(found)}")
        measured[rate] = found
    return measured


def by_policy(found: dict[str, list[dict[str, Any]]]) -> str:
    """A row for each policy: means over its measurements, one a seed, with 95 % t intervals."""
    rows = []
    for name, measured in found.items():
        if len(measured) < 3:
            continue
        rose = across(measured, "rose_share", "grpo")[SURE]
        shown = [name, str(len(measured)), f"{rose.value:.3f}"]
        for strategy, baseline in PAIRS:
            shown.append(interval(across(measured, "rose_share", strategy, baseline)[SURE]))
        rare, sure = (values(measured, f"frozen_move_by_{quarter}", "grpo")[:, 0] for quarter in ("rare", "sure"))
        shown += [f"{each.mean():.3f}" for each in (rare, sure)]
        shown.append(interval(mean_estimate(rare - sure)))
        rows.append(tuple(shown))
    return table(HEAD, rows)


def across(
    found: Sequence[Mapping[str, Any]], outcome: str, strategy: str, baseline: str | None = None
) -> dict[str, Estimate]:
    """An outcome over seeds or policies: token set → mean with a 95 % t interval, or paired difference to a baseline.

    A set that is empty in one of them is left out.

    Args:
        found: the content of each one's ``figures.json``.

    Raises:
        StatisticsError: one of them has no such outcome of the strategy or of the baseline.
    """
    measured = values(found, outcome, strategy) - (values(found, outcome, baseline) if baseline else 0)
    by_set = zip(SETS, measured.T, strict=True)
    return {tokens: mean_estimate(each) for tokens, each in by_set if np.isfinite(each).all()}


def values(found: Sequence[Mapping[str, Any]], outcome: str, strategy: str) -> NDArray[np.float64]:
    """(measurements, sets) of an outcome of a strategy; errors as `across`."""
    measured = []
    for place, each in enumerate(found):
        its = [row["values"] for row in each["rows"] if (row["outcome"], row["strategy"]) == (outcome, strategy)]
        if not its:
            raise StatisticsError(f"found[{place}] has no {outcome} of {strategy}. Measure it there, or leave it out.")
        measured += its
    return np.array(measured, float)


def interval(estimate: Estimate) -> str:
    """The value with its interval."""
    value, low, high = (f"{each:+.3f}" for each in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))

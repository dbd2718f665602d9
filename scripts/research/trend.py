"""Whether the gain over a baseline grows with the group: the slope of the difference over log₂ G, with its interval.

    evenkeel sweep run sweeps/docket_groups
    python -m scripts.research.trend runs/sweeps/docket_groups --baseline gspo > configs/claims/trend.md

For each seed the paired differences in final held-out accuracy at the sizes G of the grid give one least-squares slope;
shown is their mean with its 95 % t interval over the seeds. arXiv 2604.13088 v1 reports a gain over GSPO of 3.1 points
at G = 2 and of 5.7 at 16: a slope of .009 for each doubling.
"""

import argparse
import math
import re
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from evenkeel.trainer.lab.reports.run_files import read_runs
from evenkeel.trainer.lab.statistics.intervals import mean_estimate
from scripts.program import run
from scripts.reference import table

Accuracies = dict[str, dict[int, dict[int, float]]]
"""Variant → seed → size of the group → final held-out accuracy."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command line."""
    command.add_argument("sweep", type=Path, help="directory of its runs")
    command.add_argument("--baseline", default="grpo", help="default: grpo")


def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    """Variant → the slope of each seed, with a table of their means."""
    found: Accuracies = defaultdict(lambda: defaultdict(dict))
    for each in read_runs(options.sweep).all:
        if match := re.fullmatch(r"(\w+),num_generations=(\d+)", each.variant):
            found[match[1]][each.seed][int(match[2])] = each.summary["accuracy_after"]
    measured = {}
    rows = []
    for variant in sorted(found.keys() - {options.baseline}):
        measured[variant] = slopes(found[variant], found[options.baseline])
        mean = mean_estimate(measured[variant])
        interval = f"{mean.value:+.4f} [{mean.low:+.4f}, {mean.high:+.4f}]"
        rows.append((f"`{variant}` − `{options.baseline}`", interval, str(mean.num_seeds)))
    print(table(("difference in held-out accuracy", "for each doubling of the group", "seeds"), rows))
    return measured


def slopes(ours: dict[int, dict[int, float]], theirs: dict[int, dict[int, float]]) -> list[float]:
    """Seed by seed, the least-squares slope of ours − theirs over log₂ of the size, at sizes that both have."""
    found = []
    for seed in sorted({*ours} & {*theirs}):
        sizes = sorted({*ours[seed]} & {*theirs[seed]})
        differences = [ours[seed][size] - theirs[seed][size] for size in sizes]
        found.append(float(np.polyfit([math.log2(size) for size in sizes], differences, 1)[0]))
    return found


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))

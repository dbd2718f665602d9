"""The rewards of a sweep's runs by rollout batch, as a table and a picture, and the band where a new run's should lie.

    evenkeel sweep run sweeps/real_arithmetic
    python -m scripts.real_model.curve runs/sweeps/real_arithmetic --output configs/curves/real_arithmetic

writes ``real_arithmetic.csv``, a row for each rollout batch and a column for each seed, and ``real_arithmetic.svg``.
"""

import argparse
import math
import sys
from pathlib import Path

import pandas as pd
from scipy import stats

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.figures import Curve, curves_figure
from evenkeel.trainer.lab.reports.run_files import read_runs
from scripts.program import run

WINDOW = 5
"""Rollout batches of one point of the band: a batch of 16 prompts alone says little."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command line."""
    command.add_argument("sweep", type=Path, help="its directory")
    command.add_argument("--output", type=Path, required=True, help="the files, without .csv and .svg")


def read_rewards(sweep: Path) -> pd.DataFrame:
    """Rollout batch × seed: the mean reward, of a sweep's only variant.

    Raises:
        Refusal: the sweep has several variants.
    """
    runs = read_runs(sweep).by_variant
    if len(runs) > 1:
        raise Refusal(f"{sweep} has several variants ({', '.join(runs)}): a curve is of one.")
    (by_seed,) = runs.values()
    table = pd.DataFrame({f"seed {seed}": each.series("reward") for seed, each in sorted(by_seed.items())})
    return table.set_axis(table.index.astype(int)).rename_axis("rollout batch")


def windows(rewards: pd.DataFrame) -> pd.DataFrame:
    """Means of `WINDOW` rollout batches, each at its last one."""
    last = -(-rewards.index // WINDOW) * WINDOW
    return rewards.groupby(last).mean()


def band(rewards: pd.DataFrame, points: int = 1) -> pd.DataFrame:
    """Columns ``mean``, ``low`` and ``high``: where a window's mean lies in one more run, with 95 % confidence.

    mean ± t · s · √(1 + 1/S) of S ≥ 2 seeds; s² is the variance between the seeds, mean over the W windows. If windows
    vary alike and independently, t has W · (S − 1) degrees of freedom.

    Args:
        points: windows that are compared; all of them lie there with 95 % confidence (Bonferroni).
    """
    means = windows(rewards)
    count, seeds = means.shape
    spread = math.sqrt(means.var(axis=1, ddof=1).mean() * (1 + 1 / seeds))
    half = stats.t.ppf(1 - 0.025 / points, count * (seeds - 1)) * spread
    mean = means.mean(axis=1)
    return pd.DataFrame({"mean": mean, "low": (mean - half).clip(lower=0), "high": (mean + half).clip(upper=1)})


def measure(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Write both files and print the band, which is also the result."""
    rewards = read_rewards(options.sweep)
    rewards.to_csv(options.output.with_suffix(".csv"), float_format="%.4f")
    found = band(rewards)
    points = found.index.to_numpy(float)
    curve = Curve(points, *(found[column].to_numpy() for column in ("mean", "low", "high")))
    title = f"reward, mean of {WINDOW} rollout batches"
    picture = curves_figure(options.output.name, {"runs": curve}, "rollout batch", title, {"runs": 0})
    options.output.with_suffix(".svg").write_text(picture + "\n", encoding="utf-8")
    print(found.round(3).to_string())
    return found.to_dict()


if __name__ == "__main__":
    sys.exit(run(__doc__, add_arguments, measure))

"""The rollouts of a batch as numbers: means over its groups, which are independent since their prompts are."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.trainer.lab.reports.completions import VERDICT_OF

Values = NDArray[np.float64]
COLUMNS = ("row", "step", "group", "num_tokens", "correct", "reward")
"""What `summary_of` reads."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of a metric over the groups of a batch; of none the mean is NaN."""

    count: int
    mean: float
    squares: float

    @classmethod
    def of(cls, values: Values) -> "Moments":
        """Of those values that are numbers."""
        known = values[~np.isnan(values)]
        if not len(known):
            return cls(0, float("nan"), 0.0)
        return cls(len(known), float(known.mean()), float(((known - known.mean()) ** 2).sum()))


@dataclass(frozen=True)
class BatchSummary:
    """One rollout batch.

    Attributes:
        groups: (number of the group, its rows, tokens of its completions) each.
        metrics: of `group_means`, the moments over groups.
        verdicts: how many rows are right, wrong, unjudged.
    """

    number: int
    step: int
    rows: int
    groups: list[tuple[int, int, int]]
    metrics: dict[str, Moments]
    verdicts: dict[str, int]


def summary_of(number: int, table: Any) -> BatchSummary:
    """The summary of a rollout batch, from the columns `COLUMNS`."""
    labels, which = np.unique(table.column("group").to_numpy(), return_inverse=True)
    tokens = table.column("num_tokens").to_numpy().astype(float)
    sums, rows = np.bincount(which, tokens).astype(int).tolist(), np.bincount(which).tolist()
    verdicts = Counter(VERDICT_OF[correct] for correct in table.column("correct").to_pylist())
    return BatchSummary(
        number,
        int(table.column("step")[0].as_py()),
        len(table),
        list(zip(labels.tolist(), rows, sums, strict=True)),
        {name: Moments.of(values) for name, values in group_means(table, which, len(labels)).items()},
        {verdict: verdicts[verdict] for verdict in VERDICT_OF.values()},
    )


def group_means(table: Any, which: NDArray[np.int64], groups: int) -> dict[str, Values]:
    """Metric → its mean in each group (groups,), NaN where nothing in it has a value.

    Of ``wrong_reward`` over wrong answers alone.

    Args:
        which: (rows,) the group of each row, from 0.
    """
    correct = np.array([np.nan if x is None else float(x) for x in table.column("correct").to_pylist()])
    reward = np.array([np.nan if x is None else x for x in table.column("reward").to_pylist()])
    values = {
        "reward": reward,
        "accuracy": correct,
        "wrong_reward": np.where(correct == 0, reward, np.nan),
        "length": table.column("num_tokens").to_numpy().astype(float),
    }
    return {name: _means(row_values, which, groups) for name, row_values in values.items()}


def _means(values: Values, which: NDArray[np.int64], groups: int) -> Values:
    known = ~np.isnan(values)
    counts = np.bincount(which[known], minlength=groups)
    sums = np.bincount(which[known], values[known], minlength=groups)
    return np.divide(sums, counts, out=np.full(groups, np.nan), where=counts > 0)


def mean_of(moments: Sequence[Moments]) -> float:
    """The mean over all groups of several batches; NaN where there are none."""
    count = sum(each.count for each in moments)
    return sum(each.count * each.mean for each in moments if each.count) / count if count else math.nan


def mean_over(batches: Sequence[BatchSummary], metric: str) -> float:
    """The mean of a metric over all groups of several batches."""
    return mean_of([batch.metrics[metric] for batch in batches])

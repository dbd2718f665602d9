"""The completions of one evaluation, as arrays by item."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from evenkeel.trainer.lab.statistics.intervals import Floats


@dataclass(frozen=True)
class Answers:
    """One evaluation of a held-out set: a record for each completion, with the columns that the evaluation wrote.

    Where items were both sampled and answered greedily, only the samples count.
    """

    records: list[dict[str, Any]]

    @cached_property
    def counted(self) -> list[dict[str, Any]]:
        """The sampled completions, or the greedy ones where there are no others, by item and sample."""
        sampled = [record for record in self.records if not record.get("greedy")]
        return sorted(sampled or self.records, key=lambda record: (record["item"], record.get("sample") or 0))

    @cached_property
    def verdicts_by_item(self) -> dict[int, list[float]]:
        """Item → 1 right, 0 wrong or NaN unscored, for each of its completions."""
        verdicts: dict[int, list[float]] = {}
        for record in self.counted:
            correct = record.get("correct")
            verdicts.setdefault(record["item"], []).append(np.nan if correct is None else float(correct))
        return verdicts

    @cached_property
    def accuracy_by_item(self) -> dict[int, float]:
        """Item → share of right completions among the scored ones; NaN where none was scored."""
        scored = {item: [v for v in verdicts if v == v] for item, verdicts in self.verdicts_by_item.items()}
        return {item: float(np.mean(verdicts)) if verdicts else np.nan for item, verdicts in scored.items()}


@lru_cache(maxsize=64)
def read_answers(path: Path) -> Answers | None:
    """The completions in a parquet file of an evaluation; ``None`` where it cannot be read, or is empty."""
    from pyarrow import ArrowException, parquet

    try:
        records = parquet.read_table(path).to_pylist()
    except (ArrowException, OSError):
        return None
    return Answers(records) if records else None


def accuracy_table(answers: list[Answers | None]) -> Floats | None:
    """Accuracy (runs, items) over the items that all runs have; ``None`` where there is none."""
    tables = [{} if found is None else found.accuracy_by_item for found in answers]
    items = sorted(set.intersection(*map(set, tables))) if tables else []
    return np.array([[table[item] for item in items] for table in tables]) if items else None

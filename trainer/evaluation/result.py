"""Result of one evaluation of one held-out set: all completions with their verdicts, and metrics."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenkeel.trainer.evaluation.decoding import Decoding, pass_sizes
from evenkeel.trainer.evaluation.differences import differences
from evenkeel.trainer.evaluation.metrics import Values, average_correct, majority_correct, pass_at_k
from evenkeel.trainer.evaluation.shares import Estimate, share_estimate

Record = Mapping[str, Any]
"""One completion: item, sample, greedy, group, correct (None = unscored), answer, num_tokens, truncated, and texts."""


@dataclass(frozen=True)
class EvaluationResult:
    """One held-out set, answered and scored.

    Attributes:
        step: optimizer steps after which the policy was evaluated.
        records: one mapping per completion, of all processes.
        seconds: wall time of generation, on the main process.
    """

    dataset: str
    step: int
    decodings: Sequence[Decoding]
    records: Sequence[Record]
    seconds: float

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Metric (avg@k, pass@k, maj@k, greedy) → mean over all items with its interval."""
        return self._estimates_of(self.records)

    @cached_property
    def groups(self) -> dict[str, dict[str, Estimate]]:
        """The same for each group of items; empty without groups."""
        names = {record["group"] for record in self.records} - {None}
        return {
            name: self._estimates_of([record for record in self.records if record["group"] == name])
            for name in sorted(names, key=natural_order)
        }

    def summary(self) -> dict[str, Any]:
        """The numbers as plain data, for a JSON file."""
        tokens = [record["num_tokens"] for record in self.records]
        sampled = next((decoding for decoding in self.decodings if not decoding.greedy), None)
        return {
            "dataset": self.dataset,
            "step": self.step,
            "n_items": len({record["item"] for record in self.records}),
            "k": sampled.samples if sampled else 0,
            "temperature": sampled.temperature if sampled else None,
            **_plain(self.estimates),
            "by_group": {name: {"n_items": self._size(name), **_plain(found)} for name, found in self.groups.items()},
            "mean_tokens": float(np.mean(tokens)),
            "frac_truncated": float(np.mean([record["truncated"] for record in self.records])),
            "frac_unscored": float(np.mean([record["correct"] is None for record in self.records])),
            "tokens_per_second": sum(tokens) / self.seconds,
            "interval": "95 %, Wilson's score interval over items",
            "verifiers_differ": {
                " / ".join(pair): sorted({record["item"] for record in found})
                for pair, found in differences(self.records).items()
            },
        }

    def metrics(self) -> dict[str, float]:
        """The summary's numbers under ``eval_<dataset>/…``; NaN if nothing was scored."""
        summary = self.summary()
        flat = {name: found.value for name, found in self.estimates.items()}
        flat |= {f"{g}/{name}": found.value for g, made in self.groups.items() for name, found in made.items()}
        flat |= {key: summary[key] for key in ("mean_tokens", "frac_truncated", "frac_unscored", "tokens_per_second")}
        return {f"eval_{self.dataset}/{name}": value for name, value in flat.items()}

    def write(self, folder: Path) -> Path:
        """Write ``<folder>/<dataset>/step-<n>.parquet``, one row per completion, and the summary as ``.json``.

        Both are written as ``.draft`` and renamed, so that a killed run leaves no partial file.
        """
        import pyarrow
        from pyarrow import parquet

        path = folder / self.dataset / f"step-{self.step:06d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = sorted(self.records, key=lambda record: (record["item"], record["greedy"], record["sample"]))
        names = dict.fromkeys(name for row in rows for name in row)
        table = pyarrow.table({name: _column([row.get(name) for row in rows]) for name in names})
        text = json.dumps(self.summary(), indent=2) + "\n"
        numbers = path.with_suffix(".json")
        drafts = {file: file.with_name(f"{file.name}.draft") for file in (numbers, path)}
        drafts[numbers].write_text(text)
        parquet.write_table(table, drafts[path])
        for file, draft in drafts.items():
            draft.replace(file)
        return path

    def __str__(self) -> str:
        summary = self.summary()
        drawn = [f"{summary['k']} sampled" if summary["k"] else "", "greedy" if "greedy" in self.estimates else ""]
        lines = [f"{self.dataset}: {summary['n_items']} items, {' and '.join(filter(None, drawn))}, 95 % intervals"]
        lines += [f"  {name:<10} {_text(found)}" for name, found in self.estimates.items()]
        first = next(iter(self.estimates))
        lines += [f"    {name:<20} {first} {_text(made[first])}" for name, made in self.groups.items()]
        for pair, items in summary["verifiers_differ"].items():
            named = ", ".join(map(str, items[:10])) + ", …" * (len(items) > 10)
            lines.append(f"  {pair}: {len(items)} items on which they differ ({named})")
        shares = f"{summary['frac_truncated']:.1%} truncated, {summary['frac_unscored']:.1%} unscored"
        rates = f"{summary['tokens_per_second']:,.0f} tokens/s, {summary['mean_tokens']:.0f} tokens a completion"
        return "\n".join([*lines, f"  {rates}, {shares}"])

    def _size(self, group: str) -> int:
        return len({record["item"] for record in self.records if record["group"] == group})

    def _estimates_of(self, records: Sequence[Record]) -> dict[str, Estimate]:
        return {
            name: found
            for decoding in self.decodings
            for name, found in _decoding_estimates([r for r in records if r["greedy"] == decoding.greedy], decoding)
        }


def evaluation_metrics(
    results: Sequence[EvaluationResult], logged: Sequence[Mapping[str, Sequence[float]]]
) -> dict[str, float]:
    """The metrics of all sets, and over all their rows ``eval_reward`` and the means of the ``logged`` values."""
    metrics = {name: value for result in results for name, value in result.metrics().items()}
    rewards = [
        record["reward"]
        for result in results
        for record in result.records
        if record["reward"] is not None and record["greedy"] == result.decodings[0].greedy
    ]
    metrics["eval_reward"] = float(np.mean(rewards)) if rewards else math.nan
    for name in sorted({name for values in logged for name in values}):
        values = [value for every in logged for value in every.get(name, ())]
        metrics[f"eval_{name}"] = float(np.mean(values))
    return metrics


def mean_accuracies(results: Sequence[EvaluationResult]) -> Any:
    """A pandas table, metric by set: means over the checkpoints of each set, and over these means (``all sets``)."""
    import pandas

    values = [{name: each.value for name, each in result.estimates.items()} for result in results]
    sets = [result.dataset for result in results]
    means = pandas.DataFrame(values).groupby(sets, sort=False).mean()
    means.loc["all sets"] = means.mean()
    return means


def _decoding_estimates(records: Sequence[Record], decoding: Decoding) -> list[tuple[str, Estimate]]:
    rows = {item: row for row, item in enumerate(sorted({record["item"] for record in records}))}
    correct = np.full((len(rows), decoding.samples), np.nan)
    answers: list[list[str | None]] = [[None] * decoding.samples for _ in rows]
    for record in records:
        if record["correct"] is not None:
            correct[rows[record["item"]], record["sample"]] = record["correct"]
        answers[rows[record["item"]]][record["sample"]] = record["answer"]
    values: list[Values] = [average_correct(correct)]
    if decoding.samples > 1:
        values += [pass_at_k(correct, k) for k in pass_sizes(decoding.samples)] + [majority_correct(answers, correct)]
    scored = int((~np.isnan(correct)).sum())
    return [(name, share_estimate(each, scored)) for name, each in zip(decoding.metrics, values, strict=True)]


def _column(values: list[Any]) -> Any:
    """A column of the file; as JSON where its values have no type of Arrow's in common."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        texts = (json.dumps(value, default=str) for value in values)
        return pyarrow.array([None if text == "null" else text for text in texts])


def _plain(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    """Plain data for a JSON file; NaN, which JSON lacks, becomes ``None``."""
    ends = ("value", "low", "high")
    return {
        name: {end: None if math.isnan(getattr(found, end)) else getattr(found, end) for end in ends}
        for name, found in estimates.items()
    }


def _text(found: Estimate) -> str:
    return "not scored" if math.isnan(found.value) else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def natural_order(name: str) -> tuple[bool, float, str]:
    """Sort key: numbers by value, then other names in alphabetical order."""
    return (False, float(name), "") if name.isdecimal() else (True, 0.0, name)

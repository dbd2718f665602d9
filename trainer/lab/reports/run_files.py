"""Reads the files of a run, or of the runs of a sweep. Files may be missing in older or unfinished runs."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenkeel.errors import Refusal
from evenkeel.trainer.lab.reports.held_out import Answers, read_answers
from evenkeel.trainer.run.record.files import METRICS, SUMMARY, read_record
from evenkeel.trainer.run.record.run_record import RunRecord

SWEEP = "sweep.json"
"""The file of a sweep's directory that lists its cells."""


@dataclass(frozen=True)
class RecordedRun(RunRecord):
    """One run of a report.

    Attributes:
        variant: its name, shared by the runs of all its seeds.
        seed: the run's seed, by which runs of different variants are paired.
        steps_per_rollout: optimizer steps of one rollout batch, which differ between variants.
    """

    variant: str
    seed: int
    steps_per_rollout: float = 1.0

    def final_answers(self, dataset: str) -> Answers | None:
        """The answers of the run's last evaluation of a held-out set; ``None`` where they cannot be read."""
        path = self.final_file(dataset)
        return read_answers(path) if path else None

    def final_file(self, dataset: str) -> Path | None:
        """The file of the run's last evaluation of a held-out set; ``None`` where it is gone."""
        names = f"eval/{dataset}/", f"eval_{dataset}/"
        evaluated = [entry["step"] for entry in self.metrics if any(key.startswith(names) for key in entry)]
        return self.answers.get(dataset, {}).get(max(evaluated, default=-1))

    def series(self, key: str) -> dict[float, float]:
        """Rollout batches done → value of a metric, where it is a finite number; the last of several at one step."""
        return {
            entry["step"] / self.steps_per_rollout: float(entry[key])
            for entry in self.metrics
            if isinstance(entry.get(key), int | float) and math.isfinite(entry[key])
        }

    @property
    def tokens(self) -> float | None:
        """Prompts' and completions' tokens of the whole run; ``None`` where not logged."""
        counts = self.series("num_tokens")
        return counts[max(counts)] if counts else None

    @property
    def device_seconds(self) -> float | None:
        """Wall time × processes, each with one device, of all parts of the run; ``None`` where one is not known."""
        seconds = self.summary.get("wall_seconds")
        return None if seconds is None else float(seconds) * int(self.manifest.get("world_size") or 1)

    def held_out(self) -> dict[str, dict[float, float]]:
        """Held-out set → rollout batches → accuracy."""
        named: dict[str, list[str]] = {}
        for key in sorted({key for entry in self.metrics for key in entry}):
            if found := re.fullmatch(r"eval[/_]([^/]+)/(?:avg@\d+|greedy)", key):
                named.setdefault(found[1], []).append(key)
        return {name: self._accuracy_series(of_set) for name, of_set in sorted(named.items())}

    def _accuracy_series(self, keys: Sequence[str]) -> dict[float, float]:
        """avg@k where items were sampled, with any k, which may change when a run is continued; else greedy."""
        sampled = [key for key in keys if not key.endswith("/greedy")]
        points = {point: value for key in sampled or keys for point, value in self.series(key).items()}
        return dict(sorted(points.items()))


@dataclass(frozen=True)
class RecordedRuns:
    """The runs of a report.

    Attributes:
        name: of the sweep or the run.
        by_variant: variant → seed → run, the baseline's variants in the order of the sweep.
        baseline: variant → the variant that it is compared with; empty for a single run.
        unfinished: cells without a finished run, by name with the reason; left out of all numbers.
        outcomes: names of those that variants are compared in.
        tuning: how the variants' settings were chosen; empty where they were not.
    """

    name: str
    by_variant: dict[str, dict[int, RecordedRun]]
    baseline: dict[str, str]
    unfinished: dict[str, str]
    outcomes: Sequence[str] = ("accuracy",)
    tuning: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all(self) -> list[RecordedRun]:
        return [run for runs in self.by_variant.values() for run in runs.values()]

    def baseline_of(self, variant: str) -> str | None:
        """The baseline of a variant; ``None`` for a baseline itself, and in the report of a single run."""
        baseline = self.baseline.get(variant, variant)
        return None if baseline == variant else baseline


def read_runs(directory: Path) -> RecordedRuns:
    """The runs under a run's directory, or a sweep's (``sweep.json`` with ``<cell>/run/``); of others a `Refusal`."""
    if (directory / SWEEP).exists():
        return _sweep_runs(directory, read_record(directory / SWEEP, dict[str, Any]))
    if (directory / METRICS).exists():
        run = RecordedRun(directory, directory.name, 0)
        seed = run.manifest.get("seed", run.raw_config.get("seed", 0))
        variant = str(run.raw_config.get("name", directory.name))
        return RecordedRuns(variant, {variant: {seed: RecordedRun(directory, variant, seed)}}, {}, {})
    raise Refusal(f"{directory} is neither the directory of a run, with {METRICS}, nor that of a sweep, with {SWEEP}.")


def _sweep_runs(directory: Path, sweep: Mapping[str, Any]) -> RecordedRuns:
    by_variant: dict[str, dict[int, RecordedRun]] = {}
    unfinished: dict[str, str] = {}
    for cell in sweep["cells"]:
        budget = cell.get("budget") or {}
        steps = float(budget.get("steps_per_rollout") or 1)
        run = RecordedRun(directory / cell["name"] / "run", cell["variant"], cell["seed"], steps)
        if run.summary:
            by_variant.setdefault(run.variant, {})[run.seed] = run
            continue
        unfinished[cell["name"]] = "not finished" if run.metrics else "not started, or failed before its first step"
        if (run.path / SUMMARY).exists():
            unfinished[cell["name"]] = "summary.json is damaged, and `evenkeel sweep run` writes it again"
    if not by_variant:
        raise Refusal(f"No cell of the sweep in {directory} has finished: see `evenkeel sweep status`.")
    baseline = {cell["variant"]: cell["baseline"] for cell in sweep["cells"]}
    outcomes = sweep.get("outcomes") or ["accuracy"]  # earlier sweeps do not say
    return RecordedRuns(sweep["name"], by_variant, baseline, unfinished, outcomes, sweep.get("tuning") or {})


def total(values: Iterable[float | None]) -> float | None:
    """The sum; ``None`` where a value is ``None``."""
    given = list(values)
    known = [value for value in given if value is not None]
    return sum(known) if len(known) == len(given) else None

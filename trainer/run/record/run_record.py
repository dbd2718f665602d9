"""The reader of a run's directory: each part is read once, when it is first used."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.config import RunConfig, load_config
from evenkeel.trainer.run.config.yaml_document import read_file
from evenkeel.trainer.run.record.files import (
    CONFIG,
    EVALUATIONS,
    MANIFEST,
    METRICS,
    SECONDS,
    SUMMARY,
    DamagedFileError,
    EvaluationRecord,
    SecondsRecord,
    bytes_of,
    read_record,
)


@dataclass(frozen=True)
class RunRecord:
    """The files of the run in the directory ``path``. What an unfinished run lacks is empty; `DamagedFileError` where a
    file does not hold what was written there.
    """

    path: Path

    @cached_property
    def config(self) -> RunConfig:
        """The resolved configuration; a `Refusal` where it is absent or damaged."""
        return load_config(self.path / CONFIG)

    @cached_property
    def raw_config(self) -> dict[str, Any]:
        """The configuration as it is written, not checked."""
        return read_file(self.path / CONFIG).plain() if (self.path / CONFIG).exists() else {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run was made of (`evenkeel.trainer.run.record.manifest`)."""
        path = self.path / MANIFEST
        return read_record(path, dict[str, Any]) if path.exists() else {}

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Empty while the run is not finished: the summary is written last. One that is damaged is written again."""
        try:
            return read_record(self.path / SUMMARY, dict[str, Any])
        except DamagedFileError:  # or absent
            return {}

    @cached_property
    def parts(self) -> list[dict[str, Any]]:
        """The parts of the run so far, each with ``began`` and ``seconds``."""
        path = self.path / SECONDS
        return list(read_record(path, SecondsRecord)["parts"]) if path.exists() else []

    @property
    def seconds(self) -> float:
        """Seconds of all parts of the run together."""
        return float(sum(part["seconds"] for part in self.parts))

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``; a last one without its end was cut off when the run was killed."""
        path = self.path / METRICS
        *whole, cut_off = bytes_of(path).split(b"\n") if path.exists() else [b""]
        lines = [_metrics_of(line) for line in whole]
        if None in lines:
            number = lines.index(None) + 1
            raise DamagedFileError(f"{path} is damaged: line {number} holds no metrics. Delete that line.")
        return [entry for entry in (*lines, _metrics_of(cut_off)) if entry is not None]

    def metric_at(self, step: int, key: str) -> float | None:
        """The value of ``key`` in the first line of ``step`` that has one; ``None`` where none has."""
        found = (entry[key] for entry in self.metrics if entry["step"] == step and entry.get(key) is not None)
        return next(map(float, found), None)

    @cached_property
    def answers(self) -> dict[str, dict[int, Path]]:
        """Held-out set → optimizer step → parquet file of its completions, both in order."""
        return self._evaluation_files("parquet")

    @cached_property
    def evaluations(self) -> dict[str, dict[int, Path]]:
        """Held-out set → optimizer step → JSON file of its numbers, both in order; see `evaluation`."""
        return self._evaluation_files("json")

    def evaluation(self, dataset: str, step: int) -> dict[str, Any]:
        """The numbers of a held-out set at a step, each metric with its interval; empty where it was not evaluated."""
        file = self.evaluations.get(dataset, {}).get(step)
        return {} if file is None else read_record(file, EvaluationRecord)

    def results(self, step: int) -> list[tuple[str, str, int, str | None, str]]:
        """Held-out set, metric, rows, value before training and at ``step``, of every metric measured at ``step``."""
        found = []
        for dataset in self.evaluations:
            evaluation = self.evaluation(dataset, step)
            before = {} if step == 0 else _with_intervals(self.evaluation(dataset, 0))
            for metric, value in _with_intervals(evaluation).items():
                found.append((dataset, metric, int(evaluation["n_items"]), before.get(metric), value))
        return found

    def _evaluation_files(self, kind: str) -> dict[str, dict[int, Path]]:
        found: dict[str, dict[int, Path]] = {}
        for path in sorted((self.path / EVALUATIONS).glob(f"*/step-*.{kind}")):
            if (step := path.stem.removeprefix("step-")).isdecimal():
                found.setdefault(path.parent.name, {})[int(step)] = path
        return found


def _with_intervals(evaluation: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
        for name, value in evaluation.items()
        if isinstance(value, dict) and {"value", "low", "high"} <= value.keys() and value["value"] is not None
    }


def _metrics_of(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or type(entry.get("step")) is not int:
        return None
    return entry if all(isinstance(value, int | float | None) for value in entry.values()) else None

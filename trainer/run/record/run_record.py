"""The one reader of a run's directory: each part is read when it is first asked for, once, and kept."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from evenkeel.trainer.run.config import RunConfig, load_config
from evenkeel.trainer.run.config.yaml_document import read_file
from evenkeel.trainer.run.record.checkpoints import checkpoints_of, newest_good_checkpoint
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
from evenkeel.trainer.run.record.rollouts import RecordedRollouts


@dataclass(frozen=True)
class RunRecord:
    """What a run has left on disk. What an unfinished run lacks is empty; `DamagedFileError` where a file does not hold
    what was written there.

    Attributes:
        path: the run's directory.
        instead: what the message about a damaged file says to do.
    """

    path: Path
    instead: str = field(default="Bring it back as it was written.", kw_only=True)

    @property
    def is_run(self) -> bool:
        """Whether the directory is that of a run."""
        return (self.path / CONFIG).is_file()

    @cached_property
    def config(self) -> RunConfig:
        """The resolved configuration.

        Raises:
            Refusal: it is absent or damaged.
        """
        return load_config(self.path / CONFIG)

    @cached_property
    def raw_config(self) -> dict[str, Any]:
        """The configuration as it is written, not checked."""
        return read_file(self.path / CONFIG).plain() if (self.path / CONFIG).exists() else {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run was made of (`evenkeel.trainer.run.record.manifest`)."""
        return self._json(MANIFEST, dict[str, Any])

    @property
    def summary(self) -> dict[str, Any]:
        """Empty while the run is not finished: the summary is written last. One that is damaged is written again."""
        return self._summary or {}

    @property
    def is_finished(self) -> bool:
        """Whether the run has its summary."""
        return self._summary is not None

    @cached_property
    def _summary(self) -> dict[str, Any] | None:
        try:
            return read_record(self.path / SUMMARY, dict[str, Any], self.instead)
        except DamagedFileError:  # or absent
            return None

    @cached_property
    def parts(self) -> list[dict[str, Any]]:
        """The parts of the run so far, each with ``began`` and ``seconds``."""
        return list(self._json(SECONDS, SecondsRecord).get("parts", []))

    @property
    def seconds(self) -> float:
        """Seconds of all parts of the run together."""
        return float(sum(part["seconds"] for part in self.parts))

    # metrics.jsonl

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``; a last one without its end was cut off when the run was killed.

        Raises:
            DamagedFileError: a line holds no metrics.
        """
        path = self.path / METRICS
        instead = f"{self.instead} Without that line it is read again."
        *whole, cut_off = bytes_of(path, instead).split(b"\n") if path.exists() else [b""]
        lines = [_metrics_of(line) for line in whole]
        if None in lines:
            raise DamagedFileError(f"{path} is damaged: line {lines.index(None) + 1} holds no metrics. {instead}")
        return [entry for entry in (*lines, _metrics_of(cut_off)) if entry is not None]

    def metric_at(self, step: int, key: str) -> float | None:
        """The value of ``key`` in the first line of ``step`` that has one; ``None`` where none has."""
        found = (entry[key] for entry in self.metrics if entry["step"] == step and entry.get(key) is not None)
        return next(map(float, found), None)

    # held-out answers

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
        if file is None:
            return {}
        return read_record(file, EvaluationRecord, self.instead)

    def _evaluation_files(self, kind: str) -> dict[str, dict[int, Path]]:
        found: dict[str, dict[int, Path]] = {}
        for path in sorted((self.path / EVALUATIONS).glob(f"*/step-*.{kind}")):
            if (step := path.stem.removeprefix("step-")).isdecimal():
                found.setdefault(path.parent.name, {})[int(step)] = path
        return found

    # checkpoints and rollouts

    @property
    def checkpoints(self) -> list[Path]:
        """All folders ``checkpoint-<step>``, the newest first, complete or not."""
        return checkpoints_of(self.path)

    def newest_checkpoint(self, *, to_resume: bool = False) -> tuple[Path | None, dict[Path, str]]:
        """The newest checkpoint whose files are as they were saved, and what is wrong with each newer one."""
        return newest_good_checkpoint(self.path, to_resume=to_resume)

    def rollouts(self, first_step: int | None = None, last_step: int | None = None) -> RecordedRollouts:
        """The recorded training rollouts of these optimizer steps."""
        return RecordedRollouts(self.path, first_step, last_step)

    def _json(self, name: str, kind: Any) -> dict[str, Any]:
        path = self.path / name
        return read_record(path, kind, self.instead) if path.exists() else {}


def _metrics_of(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("step"), int) or isinstance(entry["step"], bool):
        return None
    return entry if all(isinstance(value, int | float | None) for value in entry.values()) else None

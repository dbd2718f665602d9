"""What a run writes as it goes: every logged metric and its rollouts."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from evenkeel.trainer.run.config.schema import LoggingSection
from evenkeel.trainer.run.record.files import ROLLOUTS
from evenkeel.trainer.run.record.rollouts import begin_rollouts, rollout_file, write_rollouts
from evenkeel.trainer.run.record.run_record import RunRecord
from evenkeel.trainer.step.checkpoint import ROLLOUT_BATCHES

_HELD_OUT_SET = re.compile("^eval_(?!verifier/)(?=[^/]+/)")


def named(logs: Mapping[str, float]) -> dict[str, float]:
    """``logs`` with a held-out set's keys as ``eval/<dataset>/…``, as W&B and TensorBoard show them."""
    return {_HELD_OUT_SET.sub("eval/", key): value for key, value in logs.items()}


class MetricsFile(TrainerCallback):
    """Appends every logged metric to ``metrics.jsonl``, one flushed line per log; reports read it.

    A line holds the keys of docs/metrics.md. On a resume, lines after the checkpoint's step are dropped,
    for those steps are trained again, and so is the line with which the interrupted part of the run ended: the file
    becomes that of a run without an interruption.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero and state.global_step and self.path.exists():
            metrics = RunRecord(self.path.parent).metrics
            reached = [entry for entry in metrics if entry["step"] <= state.global_step]
            kept = [entry for entry in reached if "train_runtime" not in entry]
            draft = self.path.with_suffix(".draft")  # a kill must not cost the history
            draft.write_text("".join(f"{json.dumps(entry)}\n" for entry in kept))
            draft.replace(self.path)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and logs:
            with self.path.open("a") as file:
                file.write(json.dumps({"step": state.global_step, **named(logs)}) + "\n")


class Rollouts(TrainerCallback):
    """Writes the trainer's rollout batches to ``<run>/rollouts``.

    On a resume, batches after the checkpoint are dropped, for they are generated again: each is there once, and the
    files become those of a run without an interruption.
    """

    def __init__(self, trainer: Any, run: Path, logging: LoggingSection) -> None:
        self.trainer, self.per_batch, self.folder = trainer, logging.rollouts, run / ROLLOUTS

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        parts, rank = self.trainer.parts, args.process_index
        begin_rollouts(self.folder, max(parts.checkpoint.counts[ROLLOUT_BATCHES], parts.lag.first_unwritten), rank)
        parts.recorder.rows_per_batch = None if self.per_batch == "all" else self.per_batch
        parts.recorder.sink = lambda number, columns: write_rollouts(rollout_file(self.folder, number, rank), columns)

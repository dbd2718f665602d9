"""When a run's rollouts begin to be recorded, and from which batch on."""

from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainer.run.config.schema import LoggingSection
from trainer.run.files import ROLLOUTS
from trainer.run.rollout_files import RolloutFiles
from trainer.step.checkpoint import ROLLOUT_BATCHES


class Rollouts(TrainerCallback):
    """Has the trainer's rollout batches written under ``<run>/rollouts``; see `RolloutFiles`.

    On a resume, batches behind the checkpoint are dropped, for they are generated again: each is there once, and the
    files become those of a run without an interruption.
    """

    def __init__(self, trainer: Any, run: Path, logging: LoggingSection) -> None:
        self.trainer, self.per_batch = trainer, logging.rollouts
        limit = int(logging.rollouts_max_mb * 2**20 / trainer.args.world_size)
        self.files = RolloutFiles(run / ROLLOUTS, limit, trainer.parts.ranks.any, trainer.args.process_index)
        trainer.parts.recorder.records_scores = logging.rollout_scores

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        parts = self.trainer.parts
        self.files.start(parts.checkpoint.counts[ROLLOUT_BATCHES])
        parts.recorder.rows_per_batch = None if self.per_batch == "all" else self.per_batch
        parts.recorder.sink = self.files.write

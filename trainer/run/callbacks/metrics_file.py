"""Every logged metric on disk, W&B or not."""

import json
import re
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainer.run.directory import read_metrics

_HELD_OUT_SET = re.compile("^eval_(?!verifier/)(?=[^/]+/)")


class MetricsFile(TrainerCallback):
    """Appends every logged metric to ``metrics.jsonl``, one flushed line a log: what reports read, W&B or not.

    A line holds ``step`` and ``epoch`` beside TRL's and our keys; a held-out set's are written ``eval/<dataset>/…``, as
    W&B and TensorBoard show them. On a resume, lines after the checkpoint's step are dropped, for those steps are
    trained again, and so is the line with which the interrupted part of the run ended: the file becomes that of a run
    without an interruption.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if state.is_world_process_zero and state.global_step and self.path.exists():
            reached = [entry for entry in read_metrics(self.path) if entry["step"] <= state.global_step]
            kept = [entry for entry in reached if "train_runtime" not in entry]
            draft = self.path.with_suffix(".draft")  # a kill while it is written must not cost the history
            draft.write_text("".join(f"{json.dumps(entry)}\n" for entry in kept))
            draft.replace(self.path)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        if state.is_world_process_zero and logs:
            with self.path.open("a") as file:
                named = {_HELD_OUT_SET.sub("eval/", key): value for key, value in logs.items()}
                file.write(json.dumps({"step": state.global_step, **named}) + "\n")

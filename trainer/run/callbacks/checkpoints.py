"""What is added to a checkpoint when transformers has saved its own files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import rotate_checkpoints

from trainer.run.checkpoints import files_of, fingerprints, write_checkpoint_manifest
from trainer.run.records import LoggedRecord, read_record


class LoggedSoFar(TrainerCallback):
    """Saves what was measured since the last line of metrics, so that a resumed run logs what one without a stop does.

    Each rank keeps ``logged_so_far_<rank>.json`` in the checkpoint.

    Args:
        trainer: whose running sums are saved and restored.
        resumed_from: the checkpoint that the run goes on from.
    """

    def __init__(self, trainer: Any, resumed_from: Path | None) -> None:
        self.trainer = trainer
        self.resumed_from = resumed_from

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        trainer = self.trainer
        sums = {
            "metrics": {name: list(map(float, values)) for name, values in trainer._metrics["train"].items()},
            "means": {name: pair.tolist() for name, pair in trainer._means._sums.items()},
            "loss": trainer._tr_loss.item(),
            "total_loss": trainer._total_loss_scalar,
            "last_logged": trainer._globalstep_last_logged,
        }
        file = self._file(Path(args.output_dir) / f"checkpoint-{state.global_step}")
        if file.parent.is_dir():  # else it did not fit on its disk
            file.write_text(json.dumps(sums) + "\n")

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if self.resumed_from is None or not self._file(self.resumed_from).exists():  # saved by an older version
            return
        older = f"Rename {self.resumed_from} to go on from an older checkpoint."
        sums = read_record(self._file(self.resumed_from), LoggedRecord, older)
        trainer = self.trainer
        for name, values in sums["metrics"].items():
            trainer._metrics["train"][name] = values
        for name, pair in sums["means"].items():
            trainer._means._sums[name] = torch.tensor(pair, dtype=torch.float64, device=trainer._tr_loss.device)
        trainer._tr_loss = torch.tensor(sums["loss"], device=trainer._tr_loss.device)
        trainer._total_loss_scalar = sums["total_loss"]
        trainer._globalstep_last_logged = sums["last_logged"]

    def _file(self, checkpoint: Path) -> Path:
        return checkpoint / f"logged_so_far_{self.trainer.args.process_index}.json"


class CheckpointManifest(TrainerCallback):
    """Completes a checkpoint with its manifest when every rank has written its files; then deletes old checkpoints.

    The ranks share the work of reading the files. Old checkpoints go last: there is always one that is whole.

    Args:
        total_limit: how many checkpoints are kept; ``None`` = all.
        barrier: waits for all ranks.
    """

    def __init__(self, total_limit: int | None, barrier: Callable[[], None]) -> None:
        self.total_limit = total_limit
        self.barrier = barrier

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self.barrier()
        if not checkpoint.is_dir():  # it did not fit on its disk
            return
        mine = files_of(checkpoint)[args.process_index :: args.world_size]
        found = gather_object([fingerprints(checkpoint, mine)])
        if state.is_world_process_zero:
            files = {name: record for share in found for name, record in share.items()}
            write_checkpoint_manifest(checkpoint, files, args.world_size)
            rotate_checkpoints(
                output_dir=os.fspath(args.output_dir),
                save_total_limit=self.total_limit,
                best_model_checkpoint=state.best_model_checkpoint,
            )
        self.barrier()

"""The manifest of a checkpoint, written after transformers' own files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from transformers import TrainerCallback
from transformers.trainer_utils import rotate_checkpoints

from evenkeel.trainer.run.record.checkpoints import files_of, fingerprints, write_checkpoint_manifest


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

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
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

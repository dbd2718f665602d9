"""A run that makes no progress says where it is: the stacks of every rank."""

import contextlib
import faulthandler
from pathlib import Path
from typing import IO, Any

from transformers import TrainerCallback


class StallWatchdog(TrainerCallback):
    """Without progress for ``seconds`` each rank writes ``<folder>/rank-<r>.txt``, and the run waits on.

    Progress is a forward and backward pass, an optimizer step, a batch of an evaluation, a logged line, a checkpoint.
    Ranks wait for one another, so all of them notice, each by its own clock. The stacks are written from C: the
    interpreter itself may be what hangs. Meanwhile `HEARTBEAT` prints the stage.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self._file: IO[str] | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = (self.folder / f"rank-{args.process_index}.txt").open("a")
        self.on_substep_end()

    def on_substep_end(self, *_: Any, **__: Any) -> None:
        if self._file is not None:
            faulthandler.dump_traceback_later(self.seconds, file=self._file)

    on_step_end = on_prediction_step = on_evaluate = on_log = on_save = on_substep_end

    def on_train_end(self, *_: Any, **__: Any) -> None:
        faulthandler.cancel_dump_traceback_later()
        if self._file is not None:
            self._file.close()
            path, self._file = Path(self._file.name), None
            if not path.stat().st_size:
                path.unlink()
            with contextlib.suppress(OSError):  # another rank's file is there, or it was faster
                self.folder.rmdir()

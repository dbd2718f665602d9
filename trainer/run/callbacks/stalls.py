"""A run that makes no progress says where it is: the stacks of every rank and of its verifiers' processes."""

import contextlib
import faulthandler
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from evenkeel.trainer.run.processes import FAILED

LATER = 1.5
"""From so many times the limit on the stacks are written from C, for the interpreter itself may be what hangs."""
SECONDS_FOR_THE_OTHERS = 5.0
"""Before an abort: the other ranks, whose clocks run apart a little, write theirs."""


class StallWatchdog(TrainerCallback):
    """Without progress for ``seconds`` each rank writes ``<folder>/rank-<r>.txt``; then the run waits on or ends.

    Progress is a forward and backward pass, an optimizer step, a batch of an evaluation, a logged line, a checkpoint.
    Ranks wait for one another, so all of them notice, each by its own clock. Where a thread holds the interpreter for
    good (a regular expression without end), nothing can be printed: then the stacks come later, from C.

    Args:
        verifier_stacks: returns the stacks of this rank's verifier processes.
        aborts: whether the run ends with status 1.
    """

    def __init__(self, folder: Path, seconds: float, *, aborts: bool, verifier_stacks: Callable[[], str] = str) -> None:
        self.folder = folder
        self.seconds = seconds
        self.aborts = aborts
        self.verifier_stacks = verifier_stacks
        self.state: TrainerState | None = None
        self._latest = 0.0
        self._over = threading.Event()
        self._file: IO[str] | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.state, self.rank = state, args.process_index
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = (self.folder / f"rank-{self.rank}.txt").open("a")
        self._over.clear()
        self._progress()
        self._thread = threading.Thread(target=self._watch, name="stall-watchdog", daemon=True)
        self._thread.start()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self._over.set()
        self._thread.join()  # it may be writing
        faulthandler.cancel_dump_traceback_later()
        if self._file is not None:
            self._file.close()
            path = Path(self._file.name)
            if not path.stat().st_size:
                path.unlink()
            with contextlib.suppress(OSError):  # another rank's file is there, or it was faster
                self.folder.rmdir()

    def on_substep_end(self, *_: Any, **__: Any) -> None:
        self._progress()

    on_step_end = on_prediction_step = on_evaluate = on_log = on_save = on_substep_end

    def _progress(self) -> None:
        self._latest = time.monotonic()
        if self._file is not None and not self._file.closed:
            faulthandler.dump_traceback_later(LATER * self.seconds, file=self._file, exit=self.aborts)

    def _watch(self) -> None:
        reported = 0.0
        while not self._over.wait(max(0.05, min(self.seconds / 10, self._latest + self.seconds - time.monotonic()))):
            if time.monotonic() - self._latest >= self.seconds and reported != self._latest:
                reported = self._latest
                self._report()

    def _report(self) -> None:
        assert self._file is not None
        assert self.state is not None
        idle = f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} minutes"
        who = f"rank {self.rank}, process {os.getpid()}"
        now, step = datetime.now(UTC).isoformat(timespec="seconds"), self.state.global_step
        self._file.write(f"\n=== {now}: {who}, no progress for {idle} at step {step}\n")
        self._file.flush()
        faulthandler.dump_traceback(self._file, all_threads=True)
        self._file.write(f"\n--- processes of its verifiers\n{self.verifier_stacks() or 'none at work'}\n")
        self._file.flush()
        if self.rank == 0:
            then = (
                "The run ends now, as stopping.stall_aborts says; --resume auto resumes from the newest checkpoint."
                if self.aborts
                else "The run keeps waiting; stopping.stall_aborts: true would end it. To end it now send it "
                "SIGKILL: --resume auto resumes from the newest checkpoint."
            )
            print(
                f"\nNo progress for {idle} (stopping.stall_minutes) after optimizer step {step}. Where every rank and "
                f"its verifiers are is in {self.folder}/rank-*.txt. {then}",
                flush=True,
            )
        if self.aborts:
            time.sleep(min(SECONDS_FOR_THE_OTHERS, self.seconds))
            os._exit(FAILED)

"""The directory of one cell: its files, and the state that they show.

<output_dir>/<variant>-s<seed>/
    cell.json         the cell and the attempts that were started; written by the sweep alone
    attempt-<n>.json  how attempt n went; written by the process that runs it alone
    cell.lock         held while an attempt runs; names the process
    log.txt           the output of all attempts
    run/              the run directory, as of any run
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from evenkeel.trainer.run.record.checkpoints import newest_good_checkpoint
from evenkeel.trainer.run.record.files import read_record, write_json
from evenkeel.trainer.run.record.run_record import RunRecord

State = Literal["waiting", "submitted", "running", "stopped", "failed", "finished"]
SECONDS_FOR_READERS = 5.0
"""Readers hold a cell's lock for a moment when they look whether it is free, so an attempt tries for this long."""


class CellDirectory:
    """Reads and writes the files of one cell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path / "run"
        self.log = path / "log.txt"
        self.lock = path / "cell.lock"

    def definition(self) -> dict[str, Any]:
        """``cell.json``, or an empty mapping where the cell was never started."""
        return _read(self.path / "cell.json")

    def write_definition(self, definition: Mapping[str, Any]) -> None:
        """Replace ``cell.json``."""
        write_json(self.path / "cell.json", definition)

    def replace_last_attempt(self, *entries: Mapping[str, Any]) -> None:
        """Replace what ``cell.json`` says of the newest attempt; by nothing where the queue refused it."""
        known = self.definition()
        self.write_definition({**known, "attempts": [*known["attempts"][:-1], *entries]})

    def attempt(self, number: int) -> dict[str, Any]:
        """``attempt-<number>.json``; empty where that attempt did not start."""
        return _read(self.path / f"attempt-{number}.json")

    def write_attempt(self, number: int, record: Mapping[str, Any]) -> None:
        """Replace ``attempt-<number>.json``."""
        write_json(self.path / f"attempt-{number}.json", record)

    def attempts(self) -> list[dict[str, Any]]:
        """Every attempt that was started: its entry in ``cell.json``, updated by its ``attempt-<number>.json``."""
        asked = self.definition().get("attempts", [])
        return [{**entry, **self.attempt(entry["number"])} for entry in asked]

    def summary(self) -> dict[str, Any]:
        """The run's summary, which it writes when it is done; empty before that."""
        return RunRecord(self.run).summary

    def checkpoint(self) -> Path | None:
        """The newest good checkpoint of ``run/``; a rerun of it, ``run-2/``, does not count.

        Good: the SHA-256 of its files is as saved. The run itself would resume from it.
        """
        return newest_good_checkpoint(self.run)[0]

    def state(self) -> State:
        """The state by the cell's files: ``submitted`` waits for a machine, ``stopped`` goes on when the sweep does."""
        if self.is_running():
            return "running"
        if self.summary():
            return "finished"
        attempts = self.attempts()
        if not attempts:
            return "waiting"
        newest = attempts[-1]
        if "started" not in newest:
            return "submitted"
        return "stopped" if newest.get("stopped", True) else "failed"  # killed attempts leave no record

    def is_running(self) -> bool:
        """Whether an attempt runs on this machine, or on one that shares its locks.

        A shared lock, which filelock does not have: readers must not take each other for the attempt.
        """
        if not self.lock.exists():
            return False
        with self.lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def runner(self) -> int | None:
        """The process that runs the current attempt; SIGTERM makes it stop the run; ``None`` where none runs."""
        text = self.lock.read_text() if self.is_running() else ""
        return int(text) if text else None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the cell's lock for one attempt; `filelock.Timeout` where another one runs."""
        with FileLock(self.lock, timeout=SECONDS_FOR_READERS, poll_interval=0.1, fallback_to_soft=False):
            self.lock.write_text(str(os.getpid()))
            yield

    def log_end(self, lines: int = 20) -> str:
        """The last lines of the log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.rstrip().splitlines()[-lines:])


def _read(path: Path) -> dict[str, Any]:
    return read_record(path, dict[str, Any], "Delete it.") if path.exists() else {}

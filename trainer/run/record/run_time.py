"""The duration of a run over all its parts; of a killed part a few seconds may be missing."""

import contextlib
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from evenkeel.trainer.run.record.files import SECONDS, write_json
from evenkeel.trainer.run.record.run_record import RunRecord

SECONDS_BETWEEN_WRITES = 5.0
"""At most this is missing of a killed part."""


class RunTime:
    """The clock of one part: writes ``seconds.json`` every few seconds, from a thread of its own, and at its end."""

    def __init__(self, run: Path) -> None:
        self.file = run / SECONDS
        self._parts = RunRecord(run).parts
        self._began = datetime.now(UTC).isoformat(timespec="seconds")
        self._started = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-time", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()  # it writes the last time

    def _watch(self) -> None:
        self._write()
        while not self._over.wait(SECONDS_BETWEEN_WRITES):
            self._write()
        self._write()

    def _write(self) -> None:
        parts = [*self._parts, {"began": self._began, "seconds": round(time.monotonic() - self._started, 3)}]
        with contextlib.suppress(OSError):  # a full disk, which is reported elsewhere
            write_json(self.file, {"parts": parts})

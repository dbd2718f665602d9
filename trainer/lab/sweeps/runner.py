"""Run the cells of a sweep until each is finished or has failed too often; a restart continues.

Progress is read from the cells' own files, so nothing is lost when this process is killed: cells that still run are
awaited, interrupted ones resume from their checkpoint, finished ones are not run again.
"""

import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

from evenkeel.trainer.lab.sweeps.plans import Plan
from evenkeel.trainer.lab.sweeps.queues import Queue, SchedulerError
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.lab.sweeps.starting import QueuedCell, next_attempt
from evenkeel.trainer.run.processes import REFUSED, handled
from evenkeel.trainer.run.record.files import write_json

POLL_SECONDS = 1.0
RETRY_SECONDS = 30.0
"""Time without submissions after the queue has refused an attempt."""


def write_sweep(
    sweep: Sweep, plans: Sequence[Plan], root: Path, file: Path, tuning: Mapping[str, Any] | None = None
) -> None:
    """Write ``sweep.json``, from which reports and the status table read the cells and their tuning."""
    cells = [
        {
            "name": plan.cell.name,
            **asdict(plan.cell),
            "budget": {k: float(v) if isinstance(v, Fraction) else v for k, v in asdict(plan.budget).items()},
        }
        for plan in plans
    ]
    described = {
        "name": sweep.name,
        "file": str(file.absolute()),
        "config": sweep.config,
        "baseline": sweep.baseline,
        "outcomes": sweep.outcomes,
        "seeds": sweep.seeds,
        "cells": cells,
    }
    tuned = {} if tuning is None else {"tuning": tuning}
    write_json(root / "sweep.json", {**described, **tuned})


class SweepRunner:
    """The loop: start cells while there is room, see which are over, retry failed ones; ``say`` prints a line."""

    def __init__(self, sweep: Sweep, entries: list[QueuedCell], queue: Queue, say: Callable[[str], None]) -> None:
        self.sweep = sweep
        self.entries = entries
        self.queue = queue
        self.say = say
        self.failures: Counter[str] = Counter()
        self.stops = 0
        self._refused_at = -RETRY_SECONDS

    def run(self) -> bool:
        """Run all cells; false if it was stopped."""
        running = [entry for entry in self.entries if self._adopted(entry)]
        waiting = [entry for entry in self.entries if entry not in running and not entry.directory.summary()]
        stops_sent = 0
        with handled(self._stop, signal.SIGINT, signal.SIGTERM):
            while running or (waiting and not self.stops):
                while waiting and not self.stops and len(running) < self.queue.capacity:
                    if time.monotonic() - self._refused_at < RETRY_SECONDS:
                        break
                    if self._started(waiting[0], others_run=bool(running)):
                        running.append(waiting.pop(0))
                time.sleep(POLL_SECONDS)
                over = [each for each in running if self.queue.is_over(each.attempt, each.directory)]
                for entry in over:
                    running.remove(entry)
                    self.queue.release(entry.attempt)
                    if self._restarts(entry):
                        waiting.insert(0, entry)
                if self.stops > stops_sent:
                    stops_sent = self.stops
                    self._stop_all(running)
        return not self.stops

    def _adopted(self, entry: QueuedCell) -> bool:
        attempts = entry.directory.attempts()
        if not attempts or "ended" in attempts[-1] or self.queue.is_over(attempts[-1], entry.directory):
            return False
        self.say(f"{entry.name}: still running from before")
        entry.attempt = attempts[-1]
        self.queue.adopt(attempts[-1])
        return True

    def _started(self, entry: QueuedCell, *, others_run: bool) -> bool:
        """Start the cell's next attempt; whether the queue took it.

        A refusal is retried while other cells run, whose end may make room, as under a limit on a user's jobs; it is
        raised where none runs.
        """
        attempt = next_attempt(self.sweep, entry)
        try:
            entry.attempt.update(self.queue.start(entry.attempt["label"], attempt))
        except SchedulerError as refusal:
            entry.directory.replace_last_attempt()
            if not others_run:
                raise
            self._refused_at = time.monotonic()
            self.say(f"{entry.name}: not started ({refusal}); trying every {RETRY_SECONDS:g} s")
            return False
        entry.directory.replace_last_attempt(entry.attempt)
        resumed = entry.attempt["resumed_from"]
        self.say(f"{entry.name}: started" + (f" from {resumed}" if resumed else ""))
        return True

    def _restarts(self, entry: QueuedCell) -> bool:
        """Print how an attempt ended; whether the cell is to be started again."""
        name, directory = entry.name, entry.directory
        record = directory.attempt(entry.attempt["number"])
        if summary := directory.summary():
            seconds = summary.get("wall_seconds") or float("nan")
            self.say(f"{name}: finished, {summary.get('optimizer_steps')} optimizer steps in {seconds:.0f} s")
            return False
        checkpoint = directory.checkpoint()
        moved = checkpoint is not None and checkpoint.name != entry.attempt["resumed_from"]
        if self.stops or (record.get("stopped") and moved):
            self.say(f"{name}: stopped at {checkpoint.name if checkpoint else 'its beginning'}")
            return not self.stops
        self.failures[name] += 1
        refused = record.get("exit_status") == REFUSED  # it would be refused again
        again = self.failures[name] <= self.sweep.retries and not refused
        outcome = f"exit status {record['exit_status']}" if "exit_status" in record else "no exit status"
        self.say(f"{name}: failed ({outcome}); {'trying again' if again else f'see {directory.log}'}")
        return again

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stops += 1

    def _stop_all(self, running: Sequence[QueuedCell]) -> None:
        if self.stops == 1 and running:
            names = ", ".join(entry.name for entry in running)
            self.say(f"Stopping {names} with checkpoints. Ctrl-C again ends them at once.")
        for entry in running:
            try:
                (self.queue.stop if self.stops == 1 else self.queue.kill)(entry.attempt, entry.directory)
            except SchedulerError as refusal:
                self.say(f"{entry.name}: could not be stopped ({refusal})")

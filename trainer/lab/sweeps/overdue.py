"""Find cells on this machine that take too long: one that hangs would block the sweep forever.

An attempt may take `TIMES` as long as the longest cell that has finished, and never less than `LEAST_MINUTES`. Without
a finished cell there is nothing to compare with, and no limit. One that is ended goes on from its checkpoint. SLURM has
a limit of its own, ``executor.time``.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from evenkeel.trainer.lab.reports.run_files import attempt_seconds
from evenkeel.trainer.lab.sweeps.starting import QueuedCell

TIMES = 10
LEAST_MINUTES = 30.0


def overdue(running: Sequence[QueuedCell], cells: Sequence[QueuedCell]) -> list[QueuedCell]:
    """Those of ``running`` whose attempt has taken longer than it may, going by the other ``cells``."""
    late = [entry for entry in running if _seconds_so_far(entry) > 60 * LEAST_MINUTES]
    if not late:  # the other cells are not read
        return []
    longest = longest_cell(cells)
    return [entry for entry in late if longest and _seconds_so_far(entry) > TIMES * longest]


def longest_cell(cells: Sequence[QueuedCell]) -> float:
    """Seconds of all attempts at the finished cell that took the longest; 0 where none has finished."""
    finished = [entry.directory.attempts() for entry in cells if entry.directory.summary()]
    return max((sum(attempt_seconds(each) or 0.0 for each in attempts) for attempts in finished), default=0.0)


def _seconds_so_far(entry: QueuedCell) -> float:
    assert entry.attempt is not None
    started = entry.directory.attempt(entry.attempt["number"]).get("started")
    return 0.0 if started is None else (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()

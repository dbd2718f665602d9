"""Cells that take too long: one that hangs would block the sweep forever.

An attempt may take ``cell_minutes``; where the sweep's file does not say, `TIMES` as long as the longest cell that has
finished, and never less than `LEAST_MINUTES`. Without a finished cell there is nothing to compare with, and no limit.
SLURM has its own, ``executor.time``.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from evenkeel.trainer.lab.reports.run_files import attempt_seconds
from evenkeel.trainer.lab.sweeps.schema import SlurmExecution, Sweep
from evenkeel.trainer.lab.sweeps.starting import QueuedCell

TIMES = 10
LEAST_MINUTES = 30.0


def overdue(sweep: Sweep, running: Sequence[QueuedCell], cells: Sequence[QueuedCell]) -> list[QueuedCell]:
    """Those of ``running`` whose attempt has taken longer than it may, going by the other ``cells``."""
    least = 60 * (LEAST_MINUTES if sweep.cell_minutes is None else sweep.cell_minutes)
    late = [entry for entry in running if _seconds_so_far(entry) > least]  # few: the other cells are not read for none
    if not late or (limit := _limit(sweep, cells)) is None:
        return []
    return [entry for entry in late if _seconds_so_far(entry) > limit]


def why_overdue(sweep: Sweep, cells: Sequence[QueuedCell]) -> str:
    """The limit that an attempt has exceeded, as text."""
    limit = _limit(sweep, cells)
    if sweep.cell_minutes is not None or limit is None:
        return f"takes longer than cell_minutes = {sweep.cell_minutes:g}"
    return (
        f"takes longer than {limit / 60:.0f} minutes, and the longest finished cell took {_longest(cells) / 60:.0f} "
        "(cell_minutes: … sets another limit)"
    )


def _limit(sweep: Sweep, cells: Sequence[QueuedCell]) -> float | None:
    if sweep.cell_minutes is not None:
        return 60 * sweep.cell_minutes
    longest = 0.0 if isinstance(sweep.executor, SlurmExecution) else _longest(cells)
    return max(60 * LEAST_MINUTES, TIMES * longest) if longest else None


def _longest(cells: Sequence[QueuedCell]) -> float:
    """Seconds of all attempts at the finished cell that took the longest; 0 where none has finished."""
    finished = [entry.directory.attempts() for entry in cells if entry.directory.summary()]
    return max((sum(attempt_seconds(each) or 0.0 for each in attempts) for attempts in finished), default=0.0)


def _seconds_so_far(entry: QueuedCell) -> float:
    assert entry.attempt is not None
    started = entry.directory.attempt(entry.attempt["number"]).get("started")
    return 0.0 if started is None else (datetime.now(UTC) - datetime.fromisoformat(started)).total_seconds()

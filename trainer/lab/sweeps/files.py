"""The files of a sweep and of its cells: what each kind holds."""

from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from evenkeel.trainer.run.record.files import OPEN


@with_config(OPEN)
class PlannedCell(TypedDict):
    """A cell in ``sweep.json``."""

    name: str
    variant: str
    baseline: str
    seed: int
    settings: NotRequired[dict[str, Any] | None]
    budget: NotRequired[dict[str, Any] | None]


@with_config(OPEN)
class SweepRecord(TypedDict):
    """``sweep.json``."""

    name: str
    cells: list[PlannedCell]
    tuning: NotRequired[dict[str, Any] | None]
    seeds: NotRequired[list[int] | None]


@with_config(OPEN)
class AskedAttempt(TypedDict):
    """An attempt at a cell as ``cell.json`` lists it."""

    number: int
    label: NotRequired[str]
    resumed_from: NotRequired[str | None]


@with_config(OPEN)
class CellRecord(TypedDict, total=False):
    """``cell.json``."""

    attempts: list[AskedAttempt]
    config: dict[str, Any] | None
    id: str


@with_config(OPEN)
class AttemptRecord(TypedDict, total=False):
    """``attempt-<n>.json``."""

    host: str
    process_group: int
    started: str
    ended: str
    exit_status: int
    stopped: bool

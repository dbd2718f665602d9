"""The next attempt at a cell: from its newest checkpoint where there is one, else from the beginning."""

import os
import re
import shutil
import signal
import socket
import sys
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evenkeel.trainer.lab.sweeps.attempt import Attempt, now
from evenkeel.trainer.lab.sweeps.cell_directory import CellDirectory
from evenkeel.trainer.lab.sweeps.plans import Plan, launch_options
from evenkeel.trainer.lab.sweeps.process_group import await_group, files_of, group_members, signal_group
from evenkeel.trainer.lab.sweeps.schema import Sweep
from evenkeel.trainer.run.config.layers import changes
from evenkeel.trainer.run.record.directory import MAY_CHANGE

IRRELEVANT_SECTIONS = tuple(section for section in MAY_CHANGE if section not in ("evaluation", "num_processes"))


@dataclass
class QueuedCell:
    """A cell with its directory while the sweep runs, and its current attempt."""

    plan: Plan
    directory: CellDirectory
    attempt: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.plan.cell.name


def queued_cells(sweep: Sweep, plans: Sequence[Plan]) -> list[QueuedCell]:
    """Every cell with its directory under the sweep's."""
    root = Path(sweep.output_dir).absolute()
    return [QueuedCell(plan, CellDirectory(root / plan.cell.name)) for plan in plans]


def changed_settings(entry: QueuedCell) -> list[str]:
    """Differences of a cell that was already started from the sweep's file as it is now, one line for each setting.

    Settings are compared as written: a default that a newer version adds does not count as a change.
    """
    before = entry.directory.definition().get("config")
    return [] if before is None else changes(before, _explicit_settings(entry.plan))


def next_attempt(sweep: Sweep, entry: QueuedCell) -> Attempt:
    """Record the attempt in ``cell.json`` and in ``entry``, and delete a run without a checkpoint."""
    directory, plan = entry.directory, entry.plan
    _stop_orphans(directory)
    checkpoint = directory.checkpoint()
    if checkpoint is None and directory.run.exists():
        shutil.rmtree(directory.run)
    own = {"config": _explicit_settings(plan), "id": uuid.uuid4().hex[:8], "attempts": []}
    known = directory.definition() or {"sweep": sweep.name, **asdict(plan.cell), **own}
    launcher = launcher_of(sweep)
    arguments = ["-m", "evenkeel", "train", sweep.config, *plan.overrides, f"output_dir={directory.run}"]
    if checkpoint is not None:
        arguments += ["--resume", str(directory.run)]
    number = len(known["attempts"]) + 1
    entry.attempt = {
        "number": number,
        "label": f"{job_name(entry.name)}-{known['id']}-{number}",
        "resumed_from": checkpoint.name if checkpoint else None,
        "command": [*launcher, *arguments],
        "submitted": now(),
    }
    directory.write_definition({**known, "attempts": [*known["attempts"], entry.attempt]})
    return Attempt(directory.path, number, launcher, arguments, Path.cwd(), _environment(sweep, plan))


def job_name(cell: str) -> str:
    """A cell's name without characters that are special to SLURM's commands, such as a comma."""
    return re.sub(r"[^\w.=+-]", "_", cell)


def launcher_of(sweep: Sweep) -> list[str]:
    """``evenkeel launch`` with the sweep's arguments."""
    return [sys.executable, "-m", "evenkeel", "launch", *launch_options(sweep)]


def _stop_orphans(directory: CellDirectory) -> None:
    """Stop, with a checkpoint, a run that goes on although the process that started it was killed."""
    for record in directory.attempts():
        group = record.get("process_group")
        if not group or "ended" in record or record["host"] != socket.gethostname():
            continue
        log = str(directory.log.resolve())  # ids are used again
        if any(log in files_of(process) for process in group_members(group)):
            signal_group(group, signal.SIGTERM)
            await_group(group)


def _explicit_settings(plan: Plan) -> dict[str, Any]:
    """The settings that define a cell: those that its files set, without `IRRELEVANT_SECTIONS`."""
    written = plan.config.model_dump(exclude_unset=True, mode="json")
    return {section: value for section, value in written.items() if section not in IRRELEVANT_SECTIONS}


def _environment(sweep: Sweep, plan: Plan) -> dict[str, str]:
    """The variables of a cell's processes, by which W&B groups the cells; each is a run with a name of its own."""
    tags = [os.environ.get("WANDB_TAGS", ""), sweep.name[:64], plan.cell.variant.replace(",", " ")[:64]]
    return {
        "WANDB_RUN_GROUP": os.environ.get("WANDB_RUN_GROUP") or sweep.name,
        "WANDB_TAGS": ",".join(filter(None, tags)),
        **dict.fromkeys(("WANDB_NAME", "WANDB_RUN_ID"), ""),
        **sweep.environment,
    }

"""The directory of one run: which one it is, what is written there, and from where a stopped run is resumed."""

import contextlib
import itertools
import shutil
from pathlib import Path

from evenkeel.rewards.registry import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.config.layers import flattened
from evenkeel.trainer.run.record.checkpoints import checkpoints_of
from evenkeel.trainer.run.record.files import (
    CONFIG,
    MANIFEST,
    SECONDS,
    TRAINER_STATE,
    WANDB_RUN_ID,
    StateRecord,
    read_record,
)
from evenkeel.trainer.run.record.lock import LOCK
from evenkeel.trainer.run.record.manifest import read_manifest
from evenkeel.trainer.run.record.run_record import RunRecord

MAY_CHANGE = ("name", "output_dir", "num_processes", "evaluation", "logging", "stopping", "vllm")
"""Sections that may differ between a run and its continuation: they do not change what is trained."""
ENGINES_PLACE = tuple(f"vllm_{name}" for name in ("server_host", "server_port", "server_base_url", "server_timeout"))
"""Where vLLM answers: a job that is queued again gets other nodes."""
TRL_MAY_CHANGE = ("save_strategy", "save_steps", "save_total_limit", "logging_steps", *ENGINES_PLACE)
LENGTH = ("max_steps", "num_train_epochs")
"""May differ too, where the learning rate does not depend on how long the run is."""
CONSTANT = ("constant", "constant_with_warmup")


class ResumeError(Refusal):
    """A run that cannot be continued as asked; the message says what to do instead."""


def fresh_directory(output_dir: str | Path) -> Path:
    """Make and return ``output_dir``, or the first of ``output_dir-2``, ``-3``, … that does not exist yet.

    Nothing is overwritten, also where several runs start at once: a directory belongs to the run that made it.
    """
    first = Path(output_dir)
    for number in itertools.count(1):
        candidate = first if number == 1 else first.with_name(f"{first.name}-{number}")
        try:
            candidate.mkdir(parents=True)
        except FileExistsError:
            continue
        return candidate
    raise AssertionError


def forget_fresh_directory(run: Path) -> None:
    """Delete the directory of a run that was refused before its first step, if nothing else has been put there."""
    for start in checkpoints_of(run):  # of a branch
        shutil.rmtree(start)
    for name in (CONFIG, MANIFEST, LOCK, WANDB_RUN_ID, SECONDS):
        (run / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        run.rmdir()


def directories_of(output_dir: str | Path) -> list[Path]:
    """The directories of the runs of ``output_dir``, the oldest first: itself, ``-2``, ``-3``, …"""
    first = Path(output_dir)
    numbers = (path.name.removeprefix(f"{first.name}-") for path in first.parent.glob(f"{first.name}-*"))
    later = sorted(int(number) for number in numbers if number.isdigit())
    return [path for path in (first, *(first.with_name(f"{first.name}-{n}") for n in later)) if path.is_dir()]


def is_trained(checkpoint: Path, max_steps: int) -> bool:
    """Whether nothing is left to train after ``checkpoint``; ``max_steps`` ≤ 0 = as many as the run had planned."""
    instead = f"Rename {checkpoint} to resume from an older checkpoint: --resume auto takes the newest that is left."
    state = read_record(checkpoint / TRAINER_STATE, StateRecord, instead)
    planned = max_steps if max_steps > 0 else state["max_steps"]
    return bool(state["global_step"] >= planned)


def check_same_run(config: RunConfig, run: Path, world_size: int) -> None:
    """Refuse to continue ``run`` under settings that would train something else from its checkpoint on.

    Raises:
        ResumeError: naming every setting that differs, with both values, or another number of processes.
    """
    started = read_manifest(run)["world_size"]
    if started != world_size:
        raise ResumeError(
            f"{run} was trained on {started} processes and would be resumed on {world_size}: each process's random "
            f"state and share of the optimizer are in its checkpoint. Start {started} processes."
        )
    saved = RunRecord(run).config.model_dump()
    current = config.model_dump()
    for section in MAY_CHANGE:
        saved.pop(section, None), current.pop(section, None)
    constant = current["trl"].get("lr_scheduler_type") in CONSTANT
    for key in (*TRL_MAY_CHANGE, *(LENGTH if constant else ())):
        saved["trl"].pop(key, None), current["trl"].pop(key, None)
    before, now = flattened(saved), flattened(current)
    changed = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    if changed:
        lines = [f"  {key}: {before.get(key, 'absent')!r} → {now.get(key, 'absent')!r}" for key in changed]
        raise ResumeError(
            f"{run} was started with other settings, and its checkpoint can be resumed only with those:\n"
            + "\n".join(lines)
            + (
                "\nThe learning rate depends on how long the run is."
                if {*changed} & {f"trl.{k}" for k in LENGTH}
                else ""
            )
            + f"\nTake the changes back, resume with {run / CONFIG}, or start a new run without --resume."
        )

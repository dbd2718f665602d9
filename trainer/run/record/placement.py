"""The directory of a run and the checkpoint it resumes from: rank 0 decides for all."""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock

from evenkeel.rewards.registry import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.record.checkpoints import checkpoints_of, newest_good_checkpoint, set_aside, writes_manifests
from evenkeel.trainer.run.record.directory import (
    ResumeError,
    check_same_run,
    directories_of,
    fresh_directory,
)
from evenkeel.trainer.run.record.files import WANDB_RUN_ID
from evenkeel.trainer.run.record.lock import owned
from evenkeel.trainer.run.record.manifest import changed_versions, changes_since_start, read_manifest
from evenkeel.trainer.run.record.run_record import RunRecord

AUTO = "auto"
"""``--resume auto``: start, or resume where there is a checkpoint."""
NEWEST = ""
"""``--resume`` alone: resume the newest run of the configuration."""


@dataclass
class Placement:
    """A run's directory and the checkpoint that it resumes from.

    Attributes:
        finished: the newest run has its summary and needs no checkpoint to say so.
        lines: messages about the choice.
        changed: what differs from what the run was started with, where that was allowed.
        restarts: the run that ended before its first checkpoint and is started again here.
        now: its rows, model and own code as they are then.
        lock: held by rank 0 for as long as this object lives.
    """

    run: Path
    checkpoint: Path | None = None
    finished: bool = False
    lines: list[str] = field(default_factory=list)
    restarts: Path | None = None
    changed: list[str] = field(default_factory=list)
    now: dict[str, Any] = field(default_factory=dict)
    lock: FileLock | None = None


def place(
    config: RunConfig, args: Any, resume: str | None, fingerprints: Mapping[str, str], *, accept_changes: bool = False
) -> Placement:
    """The placement of a run, the same on all ranks, written into TRL's ``args`` and the loggers' environment.

    Args:
        resume: ``None`` starts a run; else `AUTO`, `NEWEST` or the directory of a run.
        fingerprints: of the rows, by part.
        accept_changes: resume although rows, model or the code of own parts are not what the run was started with.

    Raises:
        ResumeError: there is nothing to resume from, or it was trained under other settings, or from other things.
        OwnerError: another process trains there.
    """
    from accelerate.utils import broadcast_object_list

    chosen: list[Any] = [None]
    lock: FileLock | None = None
    if args.process_index == 0:
        try:
            with ExitStack() as refused:  # what is refused is free for the next start in this process
                placement = _chosen(config, resume, args.world_size, refused)
                if placement.checkpoint is not None or placement.finished:
                    _compare(placement, config, fingerprints, accept_changes)
                refused.pop_all()
            lock, placement.lock = placement.lock, None  # do not broadcast the lock
            chosen = [placement]
        except Refusal as refusal:
            chosen = [refusal]
        except OSError as error:
            where = error.filename or config.output_dir
            what = f"Nothing can be written where the run belongs, {where}: {error.strerror}."
            chosen = [ResumeError(f"{what} Make it writable, or name another output_dir.")]
    (decision,) = broadcast_object_list(chosen)
    if isinstance(decision, Refusal):
        raise decision
    decision.lock = lock
    if args.process_index == 0:
        for line in decision.lines:
            print(line, flush=True)
    args.eval_on_start = args.eval_on_start and decision.checkpoint is None  # it was evaluated when it began
    args.output_dir = str(decision.run)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(decision.run / "tensorboard")
    _hand_over("WANDB_DIR", str(decision.run))
    if args.process_index == 0 and "wandb" in config.logging.report_to:
        _identify_for_wandb(decision.run)
    return decision


def _identify_for_wandb(run: Path) -> None:
    """One W&B run for all parts of a run: its id lies in the run's directory, and W&B continues it."""
    file = run / WANDB_RUN_ID
    if not file.is_file():
        given = os.environ.get("WANDB_RUN_ID")
        file.write_text(f"{secrets.token_hex(4) if given in (None, _handed_over.get('WANDB_RUN_ID')) else given}\n")
    _hand_over("WANDB_RUN_ID", file.read_text().strip())
    os.environ.setdefault("WANDB_RESUME", "allow")


_handed_over: dict[str, str] = {}


def _hand_over(variable: str, value: str) -> None:
    """Set a variable of the environment, unless the user has; the run before in this process is not the user."""
    if os.environ.get(variable) in (None, _handed_over.get(variable)):
        os.environ[variable] = _handed_over[variable] = value


def _chosen(config: RunConfig, resume: str | None, world_size: int, refused: ExitStack) -> Placement:
    if resume is None:
        return _fresh(config, [])
    # of --resume=~/x a shell expands nothing
    runs = directories_of(config.output_dir) if resume in (AUTO, NEWEST) else [Path(resume).expanduser()]
    run = runs[-1] if runs else None
    if run is None and resume == AUTO:
        return _fresh(config, [])
    if run is None or not run.is_dir():
        raise ResumeError(
            f"There is no run in {config.output_dir if run is None else run}, so there is no complete checkpoint to "
            "resume from. Start the run without --resume; --resume auto does either."
        )
    lock = owned(run)
    refused.callback(lock.release)
    if resume == AUTO and not checkpoints_of(run) and RunRecord(run).is_finished:
        check_same_run(config, run, world_size)
        return Placement(run, finished=True)
    placement = _resumed(config, run, world_size)
    if placement.checkpoint is not None:
        placement.lock = lock
        return placement
    if resume == AUTO:
        why = f"{run} ended before its first complete checkpoint, so the run starts again."
        again = _fresh(config, [*placement.lines, why])
        again.restarts = run
        return again
    others = (path for path in reversed(directories_of(config.output_dir)) if path != run)
    older = next((path for path in others if newest_good_checkpoint(path).checkpoint is not None), None)
    hint = f" To resume an older run instead: --resume {older}." if older else ""
    what = (
        f"There is no complete checkpoint in {run}, so nothing can be resumed. Start again without --resume, or with "
        f"--resume auto, which starts or resumes.{hint}"
    )
    raise ResumeError("\n".join([*placement.lines, what]))


def _resumed(config: RunConfig, run: Path, world_size: int) -> Placement:
    """``run`` with its newest good checkpoint, the broken ones named and renamed."""
    record = RunRecord(run)
    found = record.newest_checkpoint(to_resume=True)
    if found.checkpoint is None:
        return Placement(run, lines=[_broken(path, fault) for path, fault in found.faults.items()])
    check_same_run(config, run, world_size)
    _ = record.metrics, record.rollouts().every_batch  # refused here, before the model is loaded
    lines = [f"{_broken(path, fault)} It is now {set_aside(path).name}." for path, fault in found.faults.items()]
    if not writes_manifests(run):
        lines.append(f"{run} is of an older version, whose checkpoints carry no checksums: its files are not verified.")
    return Placement(run, found.checkpoint, lines=[*lines, *_not_exact(config, run)])


def _not_exact(config: RunConfig, run: Path) -> Iterator[str]:
    """Why what follows may differ from a run without a stop although nothing of the run itself has changed."""
    if versions := changed_versions(read_manifest(run)):
        yield (
            f"{run} resumes with other versions than it was started with: {', '.join(versions)}. Numbers may differ "
            "from those of a run without a stop; for the same ones bring these versions back."
        )
    if config.trl.get("use_vllm"):
        yield (
            "vLLM draws completions in an engine of its own, whose random state is in no checkpoint: from here on they "
            "are others than without the stop, from the same distribution. Everything else continues exactly."
        )


def _compare(placement: Placement, config: RunConfig, fingerprints: Mapping[str, str], accept_changes: bool) -> None:
    """Refuse to resume with other rows, another model or other code of own parts than the run was started with."""
    run = placement.run
    placement.now, placement.changed, unknown = changes_since_start(run, config, fingerprints)
    if placement.changed and not accept_changes:
        raise ResumeError(
            f"{run} was started from other things than there are now, and the result would be neither run:\n"
            + "\n".join(placement.changed)
            + "\nBring them back, start a new run without --resume, or resume anyway: "
            "--accept-changes."
        )
    if placement.changed:
        placement.lines += [f"{run} is resumed although these are not what it was started from:", *placement.changed]
    if unknown:
        placement.lines.append(
            f"{run} was started by an older version, which did not record {' and '.join(unknown)}: whether they are "
            "what they were is not known."
        )


def _fresh(config: RunConfig, lines: list[str]) -> Placement:
    run = fresh_directory(config.output_dir)
    return Placement(run, lines=lines, lock=owned(run))


def _broken(checkpoint: Path, fault: str) -> str:
    return f"{checkpoint} is broken: {fault}."

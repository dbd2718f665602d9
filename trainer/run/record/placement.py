"""The directory of a run and the checkpoint it resumes from: rank 0 decides for all."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock

from evenkeel.errors import Refusal
from evenkeel.trainer.run.config import RunConfig
from evenkeel.trainer.run.record.checkpoints import newest_good_checkpoint, set_aside
from evenkeel.trainer.run.record.directory import check_is_run, check_same_run, fresh_directory, newest_directory, owned
from evenkeel.trainer.run.record.files import TRAINER_STATE, WANDB_RUN_ID, StateRecord, read_record
from evenkeel.trainer.run.record.manifest import differences, read_manifest, surroundings
from evenkeel.trainer.run.record.run_record import RunRecord

AUTO = "auto"
"""``--resume auto``: start, or resume where there is a checkpoint."""
NEWEST = ""
"""``--resume`` alone: resume the newest run of the configuration."""
_SET: dict[str, str] = {}
"""Variables as `place` has set them for an earlier run; other values are the user's."""


@dataclass
class Placement:
    """A run's directory and the checkpoint that it resumes from.

    Attributes:
        is_trained: no step is left to train.
        is_finished: and its summary is written.
        lines: messages about the choice.
        changed: what differs from what the run was started from, where that was allowed.
        choices: what the run took of `Experiment.choices` when it began.
        lock: held by rank 0 for as long as this object lives.
    """

    run: Path
    checkpoint: Path | None = None
    is_trained: bool = False
    is_finished: bool = False
    lines: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    choices: Mapping[str, bool] = field(default_factory=dict)
    lock: FileLock | None = None


def place(
    config: RunConfig, args: Any, resume: str | None, start: Mapping[str, Any], *, accept_changes: bool = False
) -> Placement:
    """The placement of a run, the same on all ranks, written into TRL's ``args`` and the loggers' environment.

    Args:
        resume: ``None`` starts a run; else `AUTO`, `NEWEST` or the directory of a run.
        start: its `starting_point`; rank 0's is used.
        accept_changes: resume although rows, model or the code of own parts are not what the run was started from.

    Raises:
        Refusal: there is nothing to resume from, or it was trained under other settings, or from other things; or
            another process trains there.
    """
    from accelerate.utils import broadcast_object_list

    chosen: list[Any] = [None]
    lock: FileLock | None = None
    if args.process_index == 0:
        try:
            placement = _chosen(config, args, resume, start, accept_changes)
            lock, placement.lock = placement.lock, None  # it cannot be broadcast
            chosen = [placement]
        except Refusal as refusal:
            chosen = [refusal]
        except OSError as error:
            chosen = [Refusal(f"output_dir = {config.output_dir} cannot be written: {error}.", code="resume")]
    (decision,) = broadcast_object_list(chosen)
    if isinstance(decision, Refusal):
        raise decision
    decision.lock = lock
    if args.process_index == 0:
        for line in decision.lines:
            print(line, flush=True)
    # it was evaluated when it began
    args.eval_on_start = args.eval_on_start and decision.checkpoint is None
    args.output_dir = str(decision.run)
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(decision.run / "tensorboard")
    _default("WANDB_DIR", str(decision.run))
    _default("WANDB_DATA_DIR", str(Path(os.environ["WANDB_DIR"], "wandb")))  # artifacts
    if args.process_index == 0 and "wandb" in config.logging.report_to:
        file = decision.run / WANDB_RUN_ID  # one W&B run for all parts of a run
        if not file.is_file():
            _default("WANDB_RUN_ID", secrets.token_hex(4))
            file.write_text(f"{os.environ['WANDB_RUN_ID']}\n")
        os.environ["WANDB_RUN_ID"] = _SET["WANDB_RUN_ID"] = file.read_text().strip()
        os.environ.setdefault("WANDB_RESUME", "allow")
    return decision


def _default(name: str, value: str) -> None:
    if os.environ.get(name, "") in ("", _SET.get(name)):
        os.environ[name] = _SET[name] = value


def _chosen(
    config: RunConfig, args: Any, resume: str | None, start: Mapping[str, Any], accept_changes: bool
) -> Placement:
    if resume is None:
        return _fresh(config)
    if resume in (AUTO, NEWEST):
        run = newest_directory(config.output_dir)
    else:
        run = Path(resume).expanduser()  # a shell does not expand --resume=~/x
        check_is_run(run)
    if run is None and resume == AUTO:
        return _fresh(config)
    if run is None:
        raise Refusal(f"There is no run in {config.output_dir}. --resume auto starts one.", code="resume")
    lock = owned(run)
    try:
        placement = _resumed(config, args, run, start, accept_changes)
        if placement.checkpoint is not None or (placement.is_finished and resume == AUTO):
            placement.lock = lock
            return placement
    except BaseException:
        lock.release()  # free for the next start in this process
        raise
    lock.release()
    if resume != AUTO:
        what = f"There is no complete checkpoint in {run}. --resume auto starts again."
        raise Refusal("\n".join([*placement.lines, what]), code="resume")
    again = _fresh(config)
    why = f"{run} ended before its first complete checkpoint, so the run starts again."
    again.lines = [*placement.lines, why]
    return again


def _fresh(config: RunConfig) -> Placement:
    run = fresh_directory(config.output_dir)
    return Placement(run, lock=owned(run))


def _resumed(config: RunConfig, args: Any, run: Path, start: Mapping[str, Any], accept_changes: bool) -> Placement:
    """``run`` with its newest good checkpoint, the broken ones named and renamed."""
    record = RunRecord(run)
    checkpoint, faults = newest_good_checkpoint(run)
    broken = {path: f"{path} is broken: {fault}." for path, fault in faults.items()}
    is_finished = bool(record.summary)
    if checkpoint is None and (broken or not is_finished):
        return Placement(run, lines=[*broken.values()])
    manifest = read_manifest(run)
    check_same_run(config, record, manifest["world_size"], args.world_size)
    changed = differences(manifest, start)
    shown = "".join(f"\n  {line}" for line in changed)
    if changed and not accept_changes:
        what = f"{run} was started from other things than there are now:{shown}\n"
        raise Refusal(f"{what}Bring them back, or resume anyway by --accept-changes.", code="resume")
    if checkpoint is None:
        return Placement(run, is_trained=True, is_finished=True)
    _ = record.metrics, record.parts  # refused here, before the model is loaded
    lines = [f"{line} It is now {set_aside(path).name}." for path, line in broken.items()]
    state = read_record(checkpoint / TRAINER_STATE, StateRecord)
    trained = bool(state["global_step"] >= (args.max_steps if args.max_steps > 0 else state["max_steps"]))
    if changed:
        lines.append(f"{run} is resumed although these are not what it was started from:{shown}")
    if others := differences(manifest, surroundings()):
        lines.append(f"{run} resumes with other versions, so numbers may differ: {', '.join(others)}.")
    if config.trl.get("use_vllm"):
        lines.append("vLLM's random state is in no checkpoint: completions differ from those without the stop.")
    choices = manifest.get("choices") or {}
    return Placement(run, checkpoint, trained, trained and is_finished, lines, changed, choices)
